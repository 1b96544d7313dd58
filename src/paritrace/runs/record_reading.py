"""Reads run records: both lines, a start without an end, a torn line kept as evidence, clocks that parted (RR-5)."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from paritrace.errors import EvidenceError, HostError
from paritrace.evidence import codec
from paritrace.evidence.gaps import Gap
from paritrace.evidence.versions import Reading, reading_of
from paritrace.files import LOCAL, Files
from paritrace.process.exit_watch import SeenExit
from paritrace.process.identity import Life, liveness
from paritrace.runs.record_ends import End, Line
from paritrace.runs.record_lines import (
    FORMAT,
    INVOCATION_NAME,
    MAX_RECORD_BYTES,
    RECORD_NAME,
    VERSION,
    AdapterKind,
    Invocation,
    Start,
)
from paritrace.runs.record_rows import record_folders
from paritrace.runs.stop import exit_words

CLOCKS_PART_NS = 1_000_000_000  # clocks are slewed by less in an invocation; a step of a time service is larger


Kind = TypeVar("Kind", Start, End)


class RecordState(StrEnum):
    COMPLETE = "complete"
    RUNNING = "running"
    INTERRUPTED = "interrupted"
    UNREADABLE = "unreadable"


class TornLine(Struct, frozen=True):
    """A last line without its newline: where it begins, how long it is, and its bytes as text, cut at 1,024."""

    offset: int
    num_bytes: int
    text: str


class ReadRecord(Struct, frozen=True):
    """One record as a reader may state it. `words`: its state, never a cause that nobody recorded (P2).

    `wall_moved_ns`: by how much the wall clock moved against the monotonic one between the two lines, null where it did
    not or there is no end. `invocation` is what invocation.json says, null where there is none.
    """

    name: str
    state: RecordState
    words: str
    start: Start | None = None
    end: End | None = None
    invocation: Invocation | None = None
    torn: TornLine | None = None
    wall_moved_ns: int | None = None
    problems: tuple[str, ...] = ()

    @property
    def remarks(self) -> tuple[str, ...]:
        """What else is to be said of it."""
        told = [] if self.torn is None else [f"a torn line of {self.torn.num_bytes} bytes at byte {self.torn.offset}"]
        if self.wall_moved_ns is not None:
            told.append(f"the wall clock moved by {self.wall_moved_ns / 1e9:+.3f} s against the monotonic one")
        return tuple(told)


def read_records(run_dir: Path, *, files: Files = LOCAL) -> tuple[ReadRecord, ...]:
    """Read every record below a run directory, registered or not; damage is told, never raised.

    A process that recorded itself and wrote no end is told with what the record of its launcher saw of it.
    """
    return with_seen_ends([read_record(folder, files=files) for folder in record_folders(run_dir, files=files)])


def with_seen_ends(records: Sequence[ReadRecord]) -> tuple[ReadRecord, ...]:
    """Return records in which those without an end say what another record of the run saw of their process: pure."""
    seen = [(one.start, found) for one in records if one.start and one.end for found in one.end.exits]
    return tuple(_with_seen_end(one, seen) for one in records)


def _with_seen_end(one: ReadRecord, seen: Sequence[tuple[Start, SeenExit]]) -> ReadRecord:
    start = one.start
    if (
        start is None
        or one.state is not RecordState.INTERRUPTED
        or start.names.adapter_kind is not AdapterKind.OWN_PROCESS
    ):
        return one
    ours = start.context.values.get("session_id"), start.recorder.pid
    for launcher, found in seen:
        same_clock = not isinstance(start.boot_id, Gap) and launcher.boot_id == start.boot_id
        if same_clock and (found.name, found.pid) == ours and found.seen_ns >= start.monotonic_ns:
            how = "how it did is not known" if found.wait is None else exit_words(found.wait)
            return replace(one, words=f"{one.words}; the launcher's record saw its process end: {how}")
    return one


def read_record(folder: Path, *, files: Files = LOCAL) -> ReadRecord:
    """Read the record of one invocation's folder; without one, what its invocation file shows (RR-7)."""
    name = f"{folder.parent.name}/{folder.name}"
    try:
        invocation = _invocation(folder, files)
        data = _bytes(folder, files)
    except (HostError, EvidenceError) as error:
        return ReadRecord(name, RecordState.UNREADABLE, "unreadable", problems=(error.message,))
    if data is None:
        words = "begun; it was not recorded how it ended"
        return ReadRecord(name, RecordState.INTERRUPTED, words, invocation=invocation)
    return _read(name, data, invocation)


def _read(name: str, data: bytes, invocation: Invocation | None) -> ReadRecord:
    whole, _, rest = data.rpartition(b"\n")
    torn = TornLine(len(data) - len(rest), len(rest), rest[:1024].decode("utf-8", "replace")) if rest else None
    lines: list[Line] = []
    problems: list[str] = []
    for number, text in enumerate(whole.split(b"\n") if whole else (), 1):
        try:
            lines.append(_line(text))
        except EvidenceError as error:
            problems.append(f"line {number}: {error.message}")
    start = next((line for line in lines if isinstance(line, Start)), None)
    end = next((line for line in lines if isinstance(line, End)), None)
    problems += _out_of_order(lines, start, end)
    state, words = _state(start, end, torn=torn is not None)
    return ReadRecord(
        name=name,
        state=RecordState.UNREADABLE if start is None and not torn else state,
        words=words,
        start=start,
        end=end,
        invocation=invocation,
        torn=torn,
        wall_moved_ns=_wall_moved(start, end),
        problems=tuple(problems),
    )


def _state(start: Start | None, end: End | None, *, torn: bool) -> tuple[RecordState, str]:
    if start is None:
        return RecordState.INTERRUPTED, "its start line was cut off; cause unknown" if torn else "it has no start line"
    if end is not None:
        return RecordState.COMPLETE, "complete"
    life = liveness(start.recorder)
    match life.life:
        case Life.ALIVE:
            return RecordState.RUNNING, "running"
        case Life.GONE:
            return RecordState.INTERRUPTED, "interrupted; cause unknown"
        case Life.NOT_CHECKABLE:
            return RecordState.INTERRUPTED, f"no end was written; whether it runs is not checkable here: {life.why}"


def _out_of_order(lines: list[Line], start: Start | None, end: End | None) -> list[str]:
    if start is None:
        return ["no start line"] if lines else []
    if len(lines) > 2 or lines[0] is not start or (len(lines) == 2 and end is None):
        return ["more lines than one start and one end"]
    if end is not None and (end.runtime_id, end.invocation_id, end.request_id) != (
        start.runtime_id,
        start.invocation_id,
        start.request_id,
    ):
        return ["its two lines are of two invocations"]
    return []


def _wall_moved(start: Start | None, end: End | None) -> int | None:
    if start is None or end is None:
        return None
    moved = (end.wall_ns - start.wall_ns) - (end.monotonic_ns - start.monotonic_ns)
    return moved if abs(moved) >= CLOCKS_PART_NS else None


def _line(text: bytes) -> Line:
    """Decode one line strictly; of a higher minor version what is known of it is kept."""
    return _lenient(text, End) if text.startswith(b'{"line":"end"') else _lenient(text, Start)


def _lenient(text: bytes, kind: type[Kind]) -> Kind:
    said = codec.declared(text)
    if said is not None and said.format == FORMAT and reading_of(said.version, ours=VERSION) is Reading.NEWER_MINOR:
        return codec.decode_document_lenient(text, kind, name="run record")[0]
    return codec.decode_document(text, kind, name="run record")


def _bytes(folder: Path, files: Files) -> bytes | None:
    path = folder / RECORD_NAME
    if not files.exists(path):
        return None
    data = b"".join(files.iter_chunks(path, length=MAX_RECORD_BYTES + 1, follow_links=False))
    if len(data) > MAX_RECORD_BYTES:
        raise EvidenceError(
            f"{path} is larger than any run record",
            code="invalid_document",
            fix="it is not one of ours: look at it by hand",
        )
    return data


def _invocation(folder: Path, files: Files) -> Invocation | None:
    data = files.read_if_present(folder / INVOCATION_NAME)
    return None if data is None else codec.decode_document(data, Invocation, name=str(folder / INVOCATION_NAME))
