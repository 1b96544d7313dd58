"""Reads a trace whole for what is said of it by itself: its facts, its text, and the digest of its file."""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from paritrace.files import LOCAL
from paritrace.inference.importers.kineto_facts import TraceFacts
from paritrace.inference.importers.kineto_text import TraceText


class TraceRead(Struct, frozen=True):
    """A trace that has been read to its end or to where it stops. `sha256` is of the file as it lies."""

    facts: TraceFacts
    text: TraceText
    sha256: str


def read_trace(path: Path, /, *, pattern: str | None = None) -> TraceRead:
    """Read a trace of the torch profiler.

    Raises:
        HostError: Refused: the file cannot be read.
    """
    digest = sha256()

    def chunks() -> Iterator[bytes]:
        for chunk in LOCAL.iter_chunks(path):
            digest.update(chunk)
            yield chunk

    source = chunks()
    text, facts = TraceText(source), TraceFacts(pattern=pattern)
    for batch in text.batches():
        for event in batch:
            facts.see(event)
    for _ in source:  # what lies behind the place where reading stopped is part of the file
        pass
    return TraceRead(facts=facts, text=text, sha256=digest.hexdigest())
