"""The journal's writer: a bounded queue and one thread that encodes and appends whole lines (CA-13, EV-7)."""

from __future__ import annotations

import queue
import threading
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from paritrace.capture.lines import Encode, Lines, encode, lines_of
from paritrace.capture.settings import QueueFull
from paritrace.clock import SYSTEM, Clock
from paritrace.errors import HostError
from paritrace.evidence.definition import Definition
from paritrace.evidence.gaps import CountedGap

BATCH_RECORDS = 512  # one hand-over per half thousand records keeps the queue's cost per record far below the encode's
QUEUE_BATCHES = 64  # bounds memory: at most about 32 k records, some 20 MB, wait for the disk
CLOSE_SECONDS = 60.0  # a disk that takes no write for a minute is said to be stuck; the workload must be able to end
RESERVE_BYTES = 1 << 20  # of --max-bytes, kept for definitions, step marks and the end mark


class Sink(Protocol):
    """An append-only file: `paritrace.files.Appender`."""

    def write(self, data: bytes) -> object: ...
    def sync(self) -> object: ...
    def close(self) -> object: ...


class JournalWriter:
    """Takes records on the workload's thread, writes them on its own; the thread is owned by this object.

    A fault of the disk never reaches the workload: the writer stops writing, counts what it could not write and says so
    in `failure` (P6).
    """

    def __init__(
        self,
        sink: Sink,
        *,
        max_bytes: int,
        queue_full: QueueFull,
        encode: Encode = encode,
        clock: Clock = SYSTEM,
        reserved_bytes: int = 0,
    ) -> None:
        self._sink = sink
        self._budget = max(max_bytes - RESERVE_BYTES, 0)
        self._reserved = reserved_bytes  # of the budget, for records that come as lines
        self._policy = queue_full
        self._encode = encode
        self._clock = clock
        self._taken: deque[object] = deque()  # its ends are atomic: other threads tell of themselves at any moment
        self._order = threading.RLock()  # what was taken first is queued first
        self._queue: queue.Queue[list[object] | Lines | None] = queue.Queue(QUEUE_BATCHES)
        self._handed_ns: deque[int] = deque()  # when each hand-over that is not yet written was made
        self._thread = threading.Thread(target=self._run, name="paritrace-writer", daemon=True)
        self.counts: Counter[str] = Counter()
        self.gaps: Counter[str] = Counter()
        self.bytes_written = 0
        self.failure: HostError | None = None

    def start(self) -> None:
        self._thread.start()

    def put(self, record: object) -> None:
        """Take one record; cheap unless a batch is full."""
        self._taken.append(record)
        if len(self._taken) >= BATCH_RECORDS:
            self.hand_over()

    def hand_over(self) -> None:
        """Give the records taken so far to the writing thread."""
        with self._order:
            batch = self._all_taken()
            if not batch or self._give(batch):
                return
            self._give_definitions(batch)

    def _all_taken(self) -> list[object]:
        batch: list[object] = []
        with suppress(IndexError):  # a signal's handler has taken some meanwhile
            batch.extend(self._taken.popleft() for _ in range(len(self._taken)))
        return batch

    def _give_definitions(self, batch: list[object]) -> None:
        keep: list[object] = [record for record in batch if isinstance(record, Definition)]
        self.gaps[CountedGap.DROPPED_QUEUE_FULL] += len(batch) - len(keep)
        if keep:
            self._put(keep)  # definitions are small and later lines need them

    def hand_over_lines(self, lines: Lines) -> None:
        """Give records that are lines already to the writing thread, behind all that was taken before."""
        with self._order:
            self.hand_over()
            if not self._give(lines):
                self.gaps[CountedGap.DROPPED_QUEUE_FULL] += lines.number

    def lag_ns(self) -> int:
        """How long ago the oldest hand-over was made that is not yet written; 0 when all are."""
        try:
            return self._clock.monotonic_ns() - self._handed_ns[0]
        except IndexError:  # the writing thread took the last one away in between
            return 0

    def _give(self, item: list[object] | Lines) -> bool:
        """Queue an item as the policy says; whether it was."""
        if self._policy is QueueFull.DROP and self._queue.full():  # only who holds the order fills it
            return False
        self._put(item)
        return True

    def _put(self, item: list[object] | Lines) -> None:
        self._handed_ns.append(self._clock.monotonic_ns())
        self._queue.put(item)

    def drain(self) -> None:
        """Wait until everything taken so far is in the file (not synced)."""
        self.hand_over()
        self._queue.join()

    def drain_within(self, seconds: float) -> bool:
        """As `drain`, for at most so long; whether everything is in the file."""
        self.hand_over()
        with self._queue.all_tasks_done:
            return self._queue.all_tasks_done.wait_for(lambda: not self._queue.unfinished_tasks, seconds)

    def close(self, *, end: Callable[[], list[object]]) -> None:
        """Write what is left, then the records that `end` makes of the final counts; sync and close the file."""
        self.hand_over()
        self._queue.put(None)
        self._thread.join(CLOSE_SECONDS)
        if self._thread.is_alive():
            self.failure = HostError(
                "the disk took no write for a minute",
                code="disk_stuck",
                fix="see whether the file system of the run directory answers; what was flushed is readable",
            )
            return
        if self.failure is None:
            self._write(end(), final=True)
        self._finish()

    def _finish(self) -> None:
        try:
            if self.failure is None:
                self._sink.sync()
            self._sink.close()
        except HostError as error:
            self.failure = self.failure or error

    def _run(self) -> None:
        while True:
            item = self._queue.get()
            if item is not None:
                self._write(item, final=False)
                self._handed_ns.popleft()
            self._queue.task_done()
            if item is None:
                return

    def _write(self, item: list[object] | Lines, *, final: bool) -> None:
        if self.failure is not None:
            self.gaps[CountedGap.DISK_FULL] += item.number if isinstance(item, Lines) else len(item)
            return
        if not final and self.bytes_written >= self._budget - (0 if isinstance(item, Lines) else self._reserved):
            item = self._within_budget(item)
        lines = item if isinstance(item, Lines) else lines_of(item, by=self._encode)
        if lines.faults:
            self.gaps[CountedGap.CAPTURE_ERROR] += lines.faults
        if not lines.data:
            return
        try:
            self._sink.write(lines.data)
        except HostError as error:
            self.failure = error
            self.gaps[CountedGap.DISK_FULL] += lines.number
            return
        self.bytes_written += len(lines.data)
        self.counts.update(lines.counts)

    def _within_budget(self, item: list[object] | Lines) -> list[object]:
        records = [] if isinstance(item, Lines) else item
        keep: list[object] = [record for record in records if isinstance(record, Definition)]
        self.gaps[CountedGap.OVER_BUDGET] += (item.number if isinstance(item, Lines) else len(item)) - len(keep)
        return keep
