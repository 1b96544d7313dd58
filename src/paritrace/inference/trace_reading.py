"""Reads a trace whole for what is said of it by itself: its facts, what was read, and the digest of its file."""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from paritrace.evidence.digests import sha256_of
from paritrace.files import LOCAL
from paritrace.inference.export_invariants import ExportFacts
from paritrace.inference.importers.kineto_facts import TraceFacts
from paritrace.inference.importers.kineto_text import TraceText
from paritrace.inference.importers.nsys import open_nsys
from paritrace.inference.importing import Account, Asked, Scope

_NO_RUN = Scope(run_id="check", session_id="check")  # events are looked at and kept nowhere


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


class ExportRead(Struct, frozen=True):
    """An Nsight Systems export that has been read. `sha256` is of the file as it lies."""

    facts: ExportFacts
    account: Account
    sha256: str


def read_export(path: Path, /) -> ExportRead:
    """Read an export of Nsight Systems.

    Raises:
        EvidenceError: Refused, `bad_export`.
        HostError: Refused: the file cannot be read.
    """
    events = open_nsys(Asked(path=path, scope=_NO_RUN)).events
    facts = ExportFacts()
    while True:
        try:
            facts.see(next(events))
        except StopIteration as end:
            account: Account = end.value
            return ExportRead(facts=facts, account=account, sha256=sha256_of(LOCAL.iter_chunks(path)).sha256)
