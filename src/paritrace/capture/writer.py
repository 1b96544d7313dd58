"""The journal's writer: a bounded queue and one thread that encodes and appends whole lines (CA-13, EV-7)."""

from __future__ import annotations

import queue
import threading
from collections import Counter
from collections.abc import Callable
from typing import Protocol, cast

from paritrace.capture.settings import QueueFull
from paritrace.errors import HostError
from paritrace.evidence import codec
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
        encode: Callable[[list[object]], bytes] | None = None,
    ) -> None:
        self._sink = sink
        self._budget = max(max_bytes - RESERVE_BYTES, 0)
        self._policy = queue_full
        self._encode: Callable[[list[object]], bytes] = encode or _encode_lines
        self._batch: list[object] = []
        self._queue: queue.Queue[list[object] | None] = queue.Queue(QUEUE_BATCHES)
        self._thread = threading.Thread(target=self._run, name="paritrace-writer", daemon=True)
        self.counts: Counter[str] = Counter()
        self.gaps: Counter[str] = Counter()
        self.bytes_written = 0
        self.failure: HostError | None = None

    def start(self) -> None:
        self._thread.start()

    def put(self, record: object) -> None:
        """Take one record; cheap unless a batch is full."""
        batch = self._batch
        batch.append(record)
        if len(batch) >= BATCH_RECORDS:
            self.hand_over()

    def hand_over(self) -> None:
        """Give the records taken so far to the writing thread."""
        batch, self._batch = self._batch, []
        if not batch:
            return
        if self._policy is QueueFull.BLOCK:
            self._queue.put(batch)
            return
        try:
            self._queue.put_nowait(batch)
        except queue.Full:
            keep: list[object] = [record for record in batch if isinstance(record, Definition)]
            self.gaps[CountedGap.DROPPED_QUEUE_FULL] += len(batch) - len(keep)
            if keep:
                self._queue.put(keep)  # definitions are small and later lines need them

    def drain(self) -> None:
        """Wait until everything taken so far is in the file (not synced)."""
        self.hand_over()
        self._queue.join()

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
            batch = self._queue.get()
            if batch is not None:
                self._write(batch, final=False)
            self._queue.task_done()
            if batch is None:
                return

    def _write(self, batch: list[object], *, final: bool) -> None:
        if self.failure is not None:
            self.gaps[CountedGap.DISK_FULL] += len(batch)
            return
        if not final and self.bytes_written >= self._budget:
            batch = self._within_budget(batch)
        batch, data = self._encoded(batch)
        if not batch:
            return
        try:
            self._sink.write(data)
        except HostError as error:
            self.failure = error
            self.gaps[CountedGap.DISK_FULL] += len(batch)
            return
        self.bytes_written += len(data)
        for kind, number in Counter(map(type, batch)).items():
            self.counts[kind.__name__] += number

    def _encoded(self, batch: list[object]) -> tuple[list[object], bytes]:
        """The lines of a batch; a record that has none is counted and left out, so that no other is lost with it."""
        try:
            return batch, self._encode(batch)
        except Exception:  # noqa: BLE001  whatever a workload's value did to the encoder, the thread must live (P6)
            good: list[object] = []
            lines: list[bytes] = []
            for record in batch:
                try:
                    lines.append(self._encode([record]))
                    good.append(record)
                except Exception:  # noqa: BLE001  this is the one
                    self.gaps[CountedGap.CAPTURE_ERROR] += 1
            return good, b"".join(lines)

    def _within_budget(self, batch: list[object]) -> list[object]:
        keep: list[object] = [record for record in batch if isinstance(record, Definition)]
        self.gaps[CountedGap.OVER_BUDGET] += len(batch) - len(keep)
        return keep


def _encode_lines(batch: list[object]) -> bytes:
    return codec.encode_lines(cast("list[codec.Record]", batch))
