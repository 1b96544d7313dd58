"""What an importer returns, and what it may promise: events as a stream, attachments, an account at its end (IN-10).

The protocol, for a reader of a source:

- Opening a source reads as little as it needs and returns an `Imported`. Nothing of the run is written by it.
- `attachments`: the raw files, to be registered in the envelope with their digests, parsed or not: a parse failure
  keeps the file registered. An `attachment_id` is given by `attachment_id_of`, so that importing again is a no-op.
- `events`: a generator of events in the source's order. It reads the file while it is drawn from, in memory that does
  not grow with the file; it is drawn from once. It is not a list, and a caller does not make one of it. Event ids and
  references are derived from the source (`identities.derived_id`, or the attachment id with the place in the file):
  the same file gives the same events. What was lost is yielded as `Loss` events among the others.
- Its return value (of the generator: `return Account(...)`) is the `Account` of what was read, known only at its end.
- A source that is damaged in the middle is no error: the generator yields what came before, a `Loss` of what did not,
  and returns an account that is not `complete` and says where it stopped. A source that cannot be opened at all, or is
  of another kind, raises EvidenceError, Refused, before the first event.
- Activities never name an iteration that the source did not name. Launches are activities of the domain `runtime`,
  ranges are iterations with a thread: who belongs where is `linking`'s to say, over the whole artifact (IN-7).
"""

import os
from collections.abc import Callable, Generator
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from paritrace.evidence.digests import sha256_hex
from paritrace.inference.records import Observation
from paritrace.runs.attaching import Reference


class Scope(Struct, frozen=True):
    """For which run and session something is imported."""

    run_id: str
    session_id: str


class Account(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """What was read of a source.

    Attributes:
        complete: the whole source was read, and nothing in it says that more belongs to it.
        counts: how many things of each name were read or met: `kernel`, `launches`, `not_imported:mtia`.
        limits: sentences on what this source cannot say, each whole by itself.
        stopped_at_byte: where reading ended before the source's end, None where it did not.
    """

    complete: bool
    counts: dict[str, int] = {}
    limits: tuple[str, ...] = ()
    stopped_at_byte: int | None = None


Events = Generator[Observation, None, Account]


class Imported(Struct, frozen=True):
    """A source that is open for reading; see the module for what it promises."""

    attachments: tuple[Reference, ...]
    events: Events


class SourceKind(StrEnum):
    """What `paritrace infer import KIND FILE` reads."""

    TRACE = "trace"
    LOG = "log"
    METRICS = "metrics"
    SPANS = "spans"
    CLIENT = "client"
    STORMLOG = "stormlog"


class Asked(Struct, frozen=True):
    """One file to import, and what was said of it: `options` by name, each one that the reader lists."""

    path: Path
    scope: Scope
    options: dict[str, str] = {}


class Reader(Struct, frozen=True):
    """One reader of `importers/table.py`.

    Attributes:
        name: its name for `--format`: `kineto`, `nsys`, `vllm-log`.
        reads: what it reads, in a few words for people.
        recognises: says whether a file is one of its own, from its first bytes and its name alone; it never raises for
            content. A file that no reader of its kind recognises is refused, so is one that two do.
        open: opens a file as the module says.
        options: names that `--with NAME=VALUE` may give, each with what it says.
    """

    name: str
    kind: SourceKind
    reads: str
    recognises: Callable[[Path], bool]
    open: Callable[[Asked], Imported]
    options: tuple[tuple[str, str], ...] = ()


def attachment_id_of(kind: str, path: Path) -> str:
    """Return the derived id of a file (EV-22): `KIND:NAME:` and 12 hex digits of the digest of its resolved path."""
    return f"{kind}:{path.name}:{sha256_hex(os.fsencode(path.resolve()))[:12]}"
