"""The journal's writer: bounded, counting, and never in the workload's way (CA-13, EV-7, P6)."""

import errno
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from paritrace.capture import writer as module
from paritrace.capture.settings import QueueFull
from paritrace.capture.writer import BATCH_RECORDS, QUEUE_BATCHES, RESERVE_BYTES, JournalWriter
from paritrace.errors import HostError
from paritrace.evidence import calls
from paritrace.evidence.codec import Record
from paritrace.evidence.gaps import CountedGap
from paritrace.evidence.journal import JournalReader, Loss
from paritrace.files import LOCAL, Files
from paritrace.testing.faults import ErrnoFiles, Fault, FaultyFiles

PLENTY = 1 << 40
HEADER = calls.JournalHeader(calls.FORMAT, calls.VERSION, "rank-0", 0, 0, 1, (calls.Level.OP,), {"bits": "xxh3-64"}, 4)


def call(number: int) -> calls.Call:
    return calls.Call(number, number + 1, -1, 0, 0, 0, 0, 0, 0, 0, -1, -1, 0, 0, 0, (), ())


def begun(
    path: Path, *, max_bytes: int = PLENTY, queue_full: QueueFull = QueueFull.BLOCK, files: Files = LOCAL
) -> JournalWriter:
    """A writer onto a new file, its header taken."""
    writer = JournalWriter(files.append_new(path), max_bytes=max_bytes, queue_full=queue_full)
    writer.start()
    writer.put(HEADER)
    return writer


def end_of(writer: JournalWriter) -> Callable[[], list[object]]:
    def end() -> list[object]:
        counts = writer.counts
        return [calls.EndMark(sum(counts.values()), counts["Call"], counts["Detail"], counts["State"], {})]

    return end


def read(path: Path) -> list[Record]:
    items = list(JournalReader([path.read_bytes()], name=str(path)))
    assert not any(isinstance(item, Loss) for item in items)
    return [item for item in items if not isinstance(item, Loss)]


def ids(records: list[Record]) -> list[int]:
    return [record.id for record in records if isinstance(record, calls.Call)]


def put_all(writer: JournalWriter, records: Iterable[object], *, at_once: bool = False) -> None:
    for record in records:
        writer.put(record)
    if at_once:
        writer.hand_over()


class Gate:
    """A sink that takes nothing before it is opened, as a slow disk."""

    def __init__(self) -> None:
        self.opened = threading.Event()
        self.reached = threading.Event()
        self.data: list[bytes] = []
        self.synced = self.closed = False

    def write(self, data: bytes) -> None:
        self.reached.set()
        assert self.opened.wait(60)
        self.data.append(data)

    def sync(self) -> None:
        self.synced = True

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("number", [0, 1, BATCH_RECORDS - 2, BATCH_RECORDS - 1, BATCH_RECORDS, 5 * BATCH_RECORDS + 3])
def test_every_record_is_a_line_in_order_and_the_end_says_how_many(tmp_path: Path, number: int) -> None:
    writer = begun(tmp_path / "calls.jsonl")
    for index in range(number):
        writer.put(call(index))
    writer.close(end=end_of(writer))
    records = read(tmp_path / "calls.jsonl")
    assert ids(records) == list(range(number))
    end = records[-1]
    assert isinstance(end, calls.EndMark)
    assert (end.lines, end.calls) == (number + 1, number) == (len(records) - 1, writer.counts["Call"])
    assert writer.bytes_written == (tmp_path / "calls.jsonl").stat().st_size
    assert (writer.failure, dict(writer.gaps)) == (None, {})


def test_what_was_drained_is_readable_at_once(tmp_path: Path) -> None:
    writer = begun(tmp_path / "calls.jsonl")
    writer.put(call(1))
    writer.drain()
    assert ids(read(tmp_path / "calls.jsonl")) == [1]
    writer.close(end=end_of(writer))


def test_a_budget_leaves_out_rows_never_definitions(tmp_path: Path) -> None:
    writer = begun(tmp_path / "calls.jsonl", max_bytes=RESERVE_BYTES + 4096)
    for index in range(4 * BATCH_RECORDS):
        writer.put(calls.Name(index, f"name {index}"))
        writer.put(call(index))
    writer.close(end=end_of(writer))
    records = read(tmp_path / "calls.jsonl")
    assert [record.id for record in records if isinstance(record, calls.Name)] == list(range(4 * BATCH_RECORDS))
    kept = ids(records)
    assert 0 < len(kept) < 4 * BATCH_RECORDS
    assert kept == list(range(len(kept))), "what is left out is a tail"
    assert writer.gaps == {CountedGap.OVER_BUDGET: 4 * BATCH_RECORDS - len(kept)}
    assert writer.failure is None


def test_a_budget_below_the_reserve_keeps_no_row(tmp_path: Path) -> None:
    writer = begun(tmp_path / "calls.jsonl", max_bytes=1)
    writer.put(call(0))
    writer.put(calls.StepMark(0, 0, 1, 1, 0, 0, "0x0.0p+0"))
    writer.close(end=end_of(writer))
    assert [type(record).__name__ for record in read(tmp_path / "calls.jsonl")] == [
        "JournalHeader",
        "StepMark",
        "EndMark",
    ]
    assert writer.gaps == {CountedGap.OVER_BUDGET: 1}


def test_a_journal_stays_within_its_budget(tmp_path: Path) -> None:
    budget = RESERVE_BYTES + (1 << 18)
    writer = begun(tmp_path / "calls.jsonl", max_bytes=budget)
    for index in range(200 * BATCH_RECORDS):
        writer.put(call(index))
    writer.close(end=end_of(writer))
    assert (1 << 18) <= (tmp_path / "calls.jsonl").stat().st_size <= budget
    assert writer.counts["Call"] + writer.gaps[CountedGap.OVER_BUDGET] == 200 * BATCH_RECORDS


def test_dropping_counts_what_it_drops_and_keeps_definitions() -> None:
    gate = Gate()
    writer = JournalWriter(gate, max_bytes=PLENTY, queue_full=QueueFull.DROP)
    writer.start()
    writer.put(call(-1))
    writer.hand_over()
    assert gate.reached.wait(60)  # the thread is in the disk; the queue is empty and fills now
    taken = QUEUE_BATCHES * BATCH_RECORDS
    for index in range(taken):
        writer.put(call(index))
    for index in range(BATCH_RECORDS):
        writer.put(call(taken + index))
    assert writer.gaps == {CountedGap.DROPPED_QUEUE_FULL: BATCH_RECORDS}
    waiting = threading.Thread(
        target=lambda: put_all(writer, [calls.Name(0, "kept"), call(-2)], at_once=True), daemon=True
    )
    waiting.start()
    gate.opened.set()  # a definition is worth waiting for the disk
    waiting.join(60)
    assert not waiting.is_alive()
    writer.close(end=end_of(writer))
    lines = b"".join(gate.data)
    assert b'"kept"' in lines
    dropped = writer.gaps[CountedGap.DROPPED_QUEUE_FULL]
    assert writer.counts["Call"] + dropped == 1 + taken + BATCH_RECORDS + 1
    assert lines.count(b'["c",') == writer.counts["Call"]
    assert gate.synced
    assert gate.closed


def test_blocking_loses_nothing_when_the_disk_is_slow() -> None:
    gate = Gate()
    writer = JournalWriter(gate, max_bytes=PLENTY, queue_full=QueueFull.BLOCK)
    writer.start()
    number = (QUEUE_BATCHES + 8) * BATCH_RECORDS
    workload = threading.Thread(target=lambda: put_all(writer, map(call, range(number))), daemon=True)
    workload.start()
    assert gate.reached.wait(60)
    assert workload.is_alive() or writer.counts["Call"] == 0
    gate.opened.set()
    workload.join(60)
    assert not workload.is_alive()
    writer.close(end=end_of(writer))
    assert b"".join(gate.data).count(b'["c",') == number == writer.counts["Call"]
    assert not writer.gaps


@pytest.mark.parametrize(("number", "code"), [(errno.ENOSPC, "disk_full"), (errno.EIO, "io_error")])
@pytest.mark.parametrize("at", [1, 2, 3, 4, 5, 6])
def test_a_fault_of_the_disk_is_counted_and_never_raised(tmp_path: Path, at: int, number: int, code: str) -> None:
    path = tmp_path / "calls.jsonl"
    files = FaultyFiles(at=10_000, fault=Fault.FAIL)
    files.append_new(path).close()
    opening = files.faulty.count
    path.unlink()
    files = FaultyFiles(at=opening + at, fault=Fault.TEAR, number=number)
    writer = begun(path, files=files)
    total = 1
    for batch in range(4):
        for index in range(10):
            writer.put(call(10 * batch + index))
        writer.drain()
        total += 10
    writer.close(end=end_of(writer))
    files.faulty.release()
    written = sum(writer.counts.values()) - writer.counts["EndMark"]
    lost = writer.gaps[CountedGap.DISK_FULL]
    if not files.faulty.happened:
        assert writer.failure is None
    else:
        assert isinstance(writer.failure, HostError)
        assert (writer.failure.code, bool(writer.failure.fix)) == (code, True)
    assert written + lost in (total, total + 1), "each record, and perhaps the end mark, is written or counted"
    items = list(JournalReader([path.read_bytes()], name=str(path)))
    assert len([item for item in items if isinstance(item, calls.Call)]) >= writer.counts["Call"]


def test_a_disk_that_refuses_to_sync_is_a_failure_too(tmp_path: Path) -> None:
    writer = begun(tmp_path / "calls.jsonl", files=ErrnoFiles(operation="fsync", number=errno.EIO))
    writer.put(call(1))
    writer.close(end=end_of(writer))
    assert writer.failure is not None
    assert writer.failure.code == "io_error"
    assert ids(read(tmp_path / "calls.jsonl")) == [1]


def test_a_disk_that_takes_nothing_does_not_hold_up_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CLOSE_SECONDS", 0.05)
    gate = Gate()
    writer = JournalWriter(gate, max_bytes=PLENTY, queue_full=QueueFull.BLOCK)
    writer.start()
    writer.put(call(1))
    try:
        writer.close(end=end_of(writer))
        assert writer.failure is not None
        assert writer.failure.code == "disk_stuck"
        assert not gate.closed, "the thread that still writes owns the file"
    finally:
        gate.opened.set()


def test_a_record_without_a_line_is_counted_and_no_other_is_lost(tmp_path: Path) -> None:
    writer = begun(tmp_path / "calls.jsonl")
    writer.put(call(0))
    writer.put(calls.Name(0, object()))  # type: ignore[arg-type]
    writer.put(object())
    writer.put(call(1))
    writer.drain()
    writer.put(call(2))
    writer.close(end=end_of(writer))
    records = read(tmp_path / "calls.jsonl")
    assert ids(records) == [0, 1, 2]
    assert writer.gaps == {CountedGap.CAPTURE_ERROR: 2}
    end = records[-1]
    assert isinstance(end, calls.EndMark)
    assert end.lines == len(records) - 1


@pytest.fixture
def eager_threads() -> Iterator[None]:
    """Threads that take turns as often as the interpreter lets them."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("eager_threads")
def test_gaps_counted_by_other_threads_are_neither_lost_nor_double(tmp_path: Path) -> None:
    """Other threads tell of themselves while the workload's thread hands batches over."""
    writer = begun(tmp_path / "calls.jsonl")
    number, threads = 5_000, 3
    mark = calls.GapMark(CountedGap.THREAD_NOT_COVERED, 1, "Linear", 0)
    others = [threading.Thread(target=lambda: put_all(writer, [mark] * number), daemon=True) for _ in range(threads)]
    for thread in others:
        thread.start()
    for index in range(number):
        writer.put(call(index))
        writer.hand_over()
    for thread in others:
        thread.join(60)
    writer.close(end=end_of(writer))
    records = read(tmp_path / "calls.jsonl")
    assert ids(records) == list(range(number))
    assert sum(isinstance(record, calls.GapMark) for record in records) == number * threads
    assert writer.counts["GapMark"] == number * threads
