"""The journal of a session, a line at a time: what was asked, voted for, changed and ended, in its order (SE-15).

The first line of every coordinator is `opened`; the state machine writes most of the others (`Record`), the shell what
it sees alone: `opened`, `exit`, `warning`, `closed`. Lines are numbered through all coordinators of a
directory.
"""

from typing import Any

import msgspec
from msgspec import Struct, field

from paritrace.errors import EvidenceError
from paritrace.evidence.versions import Reading, reading_of
from paritrace.session.commands import Body

FORMAT = "paritrace-session-journal"
VERSION = "1.0"
OPENED, CLOSED, EXIT, WARNING = "opened", "closed", "exit", "warning"


class Line(Struct, frozen=True, forbid_unknown_fields=True):
    """One line. `unix_ns` may step back, `sequence` never does; `what` and `facts` are listed in docs/formats."""

    sequence: int
    unix_ns: int
    generation: int
    what: str
    facts: Body = field(default_factory=dict[str, Any])


class Torn(Struct, frozen=True):
    """Bytes that are no line: a coordinator was killed while it wrote them, or somebody edited them."""

    offset: int
    num_bytes: int


class Journal(Struct, frozen=True):
    """All lines that could be read, in their order, and what could not."""

    lines: tuple[Line, ...] = ()
    torn: tuple[Torn, ...] = ()


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Line)


def encoded(line: Line, /) -> bytes:
    """Return a line as it stands in the file, with its end."""
    return _ENCODER.encode(line) + b"\n"


def journal_of(data: bytes, /) -> Journal:
    """Return what a journal holds; torn lines are named and passed over.

    Raises:
        EvidenceError: Refused, `newer_version`, `invalid_document`: another major version wrote it, or another program.
    """
    lines: list[Line] = []
    torn: list[Torn] = []
    offset = 0
    for piece in data.splitlines(keepends=True):
        line = _read(piece)
        if line is not None:
            lines.append(line)
        elif piece.strip():
            torn.append(Torn(offset, len(piece)))
        offset += len(piece)
    if lines:
        _require_ours(lines[0])
    elif torn:
        raise _foreign("no line of it can be read")
    return Journal(tuple(lines), tuple(torn))


def _read(piece: bytes) -> Line | None:
    if not piece.endswith(b"\n"):
        return None
    try:
        return _DECODER.decode(piece)
    except msgspec.DecodeError:
        return None


def _require_ours(first: Line) -> None:
    if first.what != OPENED or first.facts.get("format") != FORMAT:
        raise _foreign("it does not begin as one")
    version = str(first.facts.get("version", ""))
    match reading_of(version, ours=VERSION):
        case Reading.SAME | Reading.NEWER_MINOR:
            return
        case Reading.OTHER_MAJOR | Reading.FOREIGN:
            raise EvidenceError(
                f"the session's journal has version {version!r}, this paritrace reads {VERSION}",
                code="newer_version",
                fix="use the paritrace that the session was made with",
            )


def _foreign(why: str) -> EvidenceError:
    return EvidenceError(
        f"journal.jsonl is no journal of a session: {why}",
        code="invalid_document",
        fix="name the directory of a session; restore its journal from a copy if it was edited",
    )
