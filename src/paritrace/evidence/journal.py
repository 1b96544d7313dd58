"""Reading a journal of calls: intact records, every loss, and an account of every byte (EV-8, EV-9)."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Generic, TypeVar

import msgspec

from paritrace.errors import EvidenceError
from paritrace.evidence import codec
from paritrace.evidence.accounts import Account, Loss, LossReason
from paritrace.evidence.call_batches import CALL_START, CallBatch, decode_calls
from paritrace.evidence.calls import FORMAT, VERSION, Call, Detail, EndMark, JournalHeader, State, StateSamples
from paritrace.evidence.codec import BOM, OBJECT_START, ROW_START, Record, Unknown
from paritrace.evidence.faults import Fault, FaultKind, may_hold_long_integer
from paritrace.evidence.line_blocks import NO_DETAILS, DetailLines, Tables, Window, pays_off, whole
from paritrace.evidence.versions import Reading, reading_of

__all__ = ["Account", "Block", "JournalReader", "Loss", "LossReason"]

MAX_LINE_BYTES = 64 << 20  # beyond any record (a state of a million tensors is 20 MB): bounds memory on foreign files
MAX_TRIES = 64  # places looked at for a whole record inside a torn line
_END_START = b'{"type":"end"'
CALL_LENGTH = len(CALL_START)
_UNUSUAL = (b"\r", b"\0")
Items = Sequence[Record | Loss]
Found = TypeVar("Found")
One = TypeVar("One", covariant=True)


@dataclass(frozen=True, slots=True)
class Block(Generic[One]):
    """Intact lines: calls as columns, the other records each with the number of calls before it.

    Summaries and samples of states may be lines still, of which it is known that they are records.
    """

    calls: CallBatch
    others: Sequence[tuple[int, One]]
    details: DetailLines = NO_DETAILS
    samples: Sequence[bytes] = ()


class _Slow(Exception):  # noqa: N818  # not an error: this block takes the careful path
    """The fast path met something it does not judge."""


class JournalReader:
    """Iterates over the records and losses of one journal, in order, in bounded memory.

    Args:
        chunks: the bytes of the journal, in pieces of any size.
        name: what errors call it.
        missing: not empty when bytes are known to be absent at the end: becomes a last loss of length 0.
        num_bytes: about how long the journal is, 0 when that is not known: how blocks are read best depends on it.

    Raises, while iterating:
        EvidenceError: Refused, code `foreign_journal` (another format) or `newer_version` (another major version).
    """

    def __init__(self, chunks: Iterable[bytes], *, name: str, missing: str = "", num_bytes: int = 0) -> None:
        self._chunks = chunks
        self._num_bytes = num_bytes
        self._missing = missing
        self._name = name
        self._offset = 0
        self._line = 0
        self._lenient = False
        self._long = 0  # bytes of a line that is too long and whose end was not seen yet
        self._bytes: Counter[str] = Counter()
        self._counts: Counter[type] = Counter()
        self._notes: Counter[str] = Counter()
        self._header: JournalHeader | None = None
        self._end: EndMark | None = None
        self._tables = Tables()

    def __iter__(self) -> Iterator[Record | Loss]:
        for batch in self.batches():
            yield from batch

    def batches(self) -> Iterator[Items]:
        """Yield the same in batches of one chunk each: less to do per record."""
        return self._read(self._fast, self._fast)

    def blocks(self) -> Iterator[Items | Block[Record]]:
        """Yield the same, the calls of whole blocks as columns: a third of the work for those who keep columns."""
        return self._read(self._apart if pays_off(self._num_bytes) else self._in_columns, self._in_columns)

    def _read(self, fast: Callable[[Window], Found], single: Callable[[Window], Found]) -> Iterator[Items | Found]:
        """Read `fast` what stands in one chunk, `single` a line that goes over from one chunk to the next."""
        pieces: list[bytes] = []
        waiting = 0
        for chunk in self._chunks:
            start = 0
            if self._long:
                start = chunk.find(b"\n") + 1
                self._long += start or len(chunk)
                if not start:
                    continue
                yield [self._too_long()]
            cut = chunk.rfind(b"\n", start) + 1
            if cut:
                if pieces:  # the line that the chunk before began; the others are read where they are
                    first = chunk.find(b"\n", start) + 1
                    yield from self._block(whole(b"".join((*pieces, memoryview(chunk)[start:first]))), single)
                    start = first
                if start < cut:
                    yield from self._block(Window(chunk, start, cut), fast)
                pieces, waiting, start = [], 0, cut
            if start < len(chunk):
                pieces.append(chunk[start:])
                waiting += len(chunk) - start
            if waiting > MAX_LINE_BYTES:
                yield from self._without_end(pieces, waiting)
                pieces, waiting = [], 0
        if self._long:
            yield [self._too_long()]
        if waiting:
            yield [self._torn_tail(b"".join(pieces))]
        if self._missing:
            self._notes["losses"] += 1
            yield [Loss(self._offset, 0, self._line + 1, LossReason.MISSING, self._missing)]

    @property
    def account(self) -> Account:
        """The account of what was read so far; final once the iteration has ended."""
        return Account(
            size=self._offset,
            records=self._counts.total(),
            record_bytes=self._bytes["record"],
            torn_bytes=self._bytes["torn"],
            foreign_bytes=self._bytes["foreign"],
            losses=self._notes["losses"],
            calls=self._counts[Call],
            details=self._counts[Detail],
            states=self._counts[State],
            unknown_fields=self._notes["unknown_fields"],
            unknown_records=self._counts[Unknown],
            had_bom=bool(self._notes["bom"]),
            crlf_lines=self._notes["crlf"],
            blank_lines=self._notes["blank"],
            header=self._header,
            end=self._end,
            records_after_end=self._notes["after_end"],
        )

    # --- blocks of whole lines ---------------------------------------------------------------------------------

    def _block(self, block: Window, fast: Callable[[Window], Found]) -> Iterator[Items | Found]:
        data, start, end = block
        if not self._line:  # the first line decides how the others are read
            cut = data.find(b"\n", start) + 1
            yield self._carefully(data[start : cut - 1])
            start = cut
            if start == end:
                return
        last = data.rfind(b"\n", start, end - 1) + 1
        if last and data.startswith(_END_START, last):  # the end mark alone takes the careful path, not its block
            yield self._lines(Window(data, start, last), fast)
            yield self._carefully(data[last : end - 1])
            return
        yield self._lines(Window(data, start, end), fast)

    def _lines(self, block: Window, fast: Callable[[Window], Found]) -> Items | Found:
        if not self._lenient and all(block.data.find(byte, block.start, block.end) < 0 for byte in _UNUSUAL):
            try:
                return fast(block)
            except (_Slow, msgspec.DecodeError, RecursionError, IndexError):
                pass
        found: list[Record | Loss] = []
        for line in block.bytes()[:-1].split(b"\n"):
            self._careful(line, found)
        return found

    def _carefully(self, line: bytes) -> Items:
        found: list[Record | Loss] = []
        self._careful(line, found)
        return found

    def _fast(self, window: Window) -> Items:
        block = window.bytes()
        if may_hold_long_integer(block):
            raise _Slow
        row = codec.decode_row
        lines = block[:-1].split(b"\n")
        records = [
            row(line) if line[0] == ROW_START and OBJECT_START not in line else self._checked(line) for line in lines
        ]
        self._took(window, Counter(map(type, records)), len(lines))
        return records

    def _in_columns(self, window: Window) -> Block[Record]:
        block = window.bytes()
        lines = block[:-1].split(b"\n")
        plain = [line[:CALL_LENGTH] == CALL_START for line in lines]
        if OBJECT_START in block:
            plain = [is_call and OBJECT_START not in line for is_call, line in zip(plain, lines, strict=True)]
        rest = [place for place, is_call in enumerate(plain) if not is_call]
        if may_hold_long_integer(b"\n".join([lines[place] for place in rest])):
            raise _Slow
        others = [(place - number, self._one(lines[place])) for number, place in enumerate(rest)]
        batch = decode_calls(list(compress(lines, plain)))
        if batch is None:
            raise _Slow
        counts = Counter(type(record) for _, record in others)
        counts[Call] += len(batch)
        self._took(window, counts, len(lines))
        return Block(batch, others)

    def _apart(self, block: Window) -> Block[Record]:
        found = self._tables.apart(block)
        if found is None:
            return self._in_columns(block)
        if may_hold_long_integer(b"\n".join([line for _, line in found.others])):
            raise _Slow
        others = [(place, self._one(line)) for place, line in found.others]
        counts = Counter(type(record) for _, record in others)
        counts[Call] += len(found.calls)
        counts[Detail] += len(found.details)
        counts[StateSamples] += len(found.samples)
        self._took(block, counts, len(found.calls) + len(found.details) + len(found.samples) + len(others))
        return Block(found.calls, others, found.details, found.samples)

    def _one(self, line: bytes) -> Record:
        plain = line[0] == ROW_START and OBJECT_START not in line
        return codec.decode_row(line) if plain else self._checked(line)

    def _took(self, block: Window, counts: Counter[type], num_lines: int) -> None:
        """Account for a block whose lines are all intact; headers and what follows an end are looked at singly."""
        if counts[JournalHeader] or counts[EndMark] or self._end is not None:
            raise _Slow
        self._counts.update(counts)
        self._bytes["record"] += block.end - block.start
        self._offset += block.end - block.start
        self._line += num_lines

    def _checked(self, line: bytes) -> Record:
        record = codec.decode_row(line) if line[0] == ROW_START else codec.decode_mark(line)
        if not codec.is_canonical(line, record):
            raise _Slow
        return record

    # --- one line at a time ------------------------------------------------------------------------------------

    def _careful(self, line: bytes, found: list[Record | Loss]) -> None:
        """Take one line without its newline."""
        self._line += 1
        start, total = self._offset, len(line) + 1
        self._offset += total
        body = self._without_foreign(line, start, found)
        if not body.strip(b"\r \t"):
            self._bytes["foreign"] += len(body) + 1
            self._notes["blank"] += 1
            return
        record = self._decoded(body)
        if isinstance(record, Fault):
            found.append(self._loss(record, body, start + total - 1 - len(body)))
            return
        self._bytes["record"] += len(body) + 1
        self._counts[type(record)] += 1
        self._notes["crlf"] += body.endswith(b"\r")
        self._notes["after_end"] += self._end is not None
        if isinstance(record, EndMark):
            self._end = record
        if not isinstance(record, Unknown):
            found.append(record)

    def _without_foreign(self, line: bytes, start: int, found: list[Record | Loss]) -> bytes:
        """Set aside a byte order mark at the start of the file and a leading run of NULs."""
        if start == 0 and line.startswith(BOM):
            line = line[len(BOM) :]
            self._bytes["foreign"] += len(BOM)
            self._notes["bom"] = 1
        body = line.lstrip(b"\0")
        nuls = len(line) - len(body)
        if nuls:
            self._bytes["foreign"] += nuls
            self._notes["losses"] += 1
            found.append(Loss(start, nuls, self._line, LossReason.FOREIGN, f"{nuls} NUL bytes"))
        return body

    def _decoded(self, body: bytes) -> Record | Unknown | Fault:
        if self._line == 1:
            self._look_at_format(body)
        record: Record | Unknown | Fault
        if self._lenient:
            lenient = codec.decode_lenient(body)
            if isinstance(lenient, Fault):
                return lenient
            self._notes["unknown_fields"] += lenient.unknown_fields
            record = lenient.record
        else:
            record = codec.decode_line(body)
        if isinstance(record, JournalHeader):
            if self._header is not None or self._line != 1:
                return Fault(FaultKind.INVALID, 0, "a journal header that is not on the first line")
            self._header = record
        return record

    def _look_at_format(self, body: bytes) -> None:
        said = codec.declared(body)
        if said is None:
            return
        match reading_of(said.version, ours=VERSION) if said.format == FORMAT else Reading.FOREIGN:
            case Reading.SAME:
                return
            case Reading.NEWER_MINOR:
                self._lenient = True
            case Reading.FOREIGN:
                raise EvidenceError(
                    f"{self._name} is not a journal of calls: it says format {said.format[:80]!r}",
                    code="foreign_journal",
                    fix="name a journal written by paritrace",
                )
            case Reading.OTHER_MAJOR:
                raise EvidenceError(
                    f"{self._name} has version {said.version[:40]!r}; this paritrace reads {VERSION} and its minors",
                    code="newer_version",
                    fix="read it with the paritrace that wrote it, or a later one",
                )

    # --- losses ------------------------------------------------------------------------------------------------

    def _loss(self, fault: Fault, body: bytes, start: int) -> Loss:
        self._notes["losses"] += 1
        length = len(body) + 1
        match fault.kind:
            case FaultKind.SEVERAL_VALUES:
                reason, account = LossReason.SEVERAL_VALUES, "foreign"
            case FaultKind.INVALID:
                reason, account = LossReason.INVALID, "foreign"
            case FaultKind.MALFORMED:
                reason, account = LossReason.MALFORMED, "torn"
        self._bytes[account] += length
        detail = f"byte {start + fault.offset}: {fault.detail}"
        glued = _whole_record_inside(body) if fault.kind is FaultKind.MALFORMED else None
        if glued is not None:
            reason = LossReason.TORN
            detail += f"; a whole record begins at byte {start + glued}, not used: its line was cut off before it"
        return Loss(start, length, self._line, reason, detail)

    def _torn_tail(self, tail: bytes) -> Loss:
        loss = self._lost(len(tail), "torn", LossReason.TORN, "the last line does not end")
        self._line += 1
        return loss

    def _without_end(self, pieces: list[bytes], length: int) -> Iterator[Sequence[Loss]]:
        """Set aside a line that grows too long: NULs of a rotation at once, anything else once its end is found."""
        if any(piece.strip(b"\0") for piece in pieces):
            self._long = length
        else:
            yield [self._lost(length, "foreign", LossReason.FOREIGN, f"{length} NUL bytes")]

    def _too_long(self) -> Loss:
        length, self._long = self._long, 0
        loss = self._lost(length, "foreign", LossReason.TOO_LONG, f"a line of more than {MAX_LINE_BYTES} bytes")
        self._line += 1
        return loss

    def _lost(self, length: int, account: str, reason: LossReason, detail: str) -> Loss:
        start = self._offset
        self._offset += length
        self._notes["losses"] += 1
        self._bytes[account] += length
        return Loss(start, length, self._line + 1, reason, detail)


def _whole_record_inside(body: bytes) -> int | None:
    """Return where a whole record begins that was glued to the stump of a torn line (C-01)."""
    at = 0
    for _ in range(MAX_TRIES):
        starts = [place for place in (body.find(b'{"', at + 1), body.find(b'["', at + 1)) if place > 0]
        if not starts:
            return None
        at = min(starts)
        if not isinstance(codec.decode_line(body[at:]), Fault):
            return at
    return None
