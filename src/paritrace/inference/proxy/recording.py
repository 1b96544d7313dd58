"""Writing what the proxy saw into the artifact, behind the traffic: a bounded queue and one thread (IN-15, IN-5)."""

import queue
import threading
import time
from collections.abc import Callable, Generator, Iterable
from typing import TYPE_CHECKING

from paritrace.errors import ParitraceError
from paritrace.inference.importing import Account, Imported
from paritrace.inference.records import Loss, Observation
from paritrace.inference.vocabulary import LossReason

if TYPE_CHECKING:
    from paritrace.inference.context import Context

COMPONENT = "proxy"
MOST_WAITING = 20_000  # events that wait to be written; beyond it they are dropped and counted, never waited for
MOST_AT_ONCE = 2_000  # events of one append
GATHERED_SECONDS = 0.2  # how long the first event of a batch waits for more: an append costs about ten milliseconds
ENDS_WITHIN_SECONDS = 60.0  # the last append waits for others at most so long (IN-5)
ACCOUNT = Account(  # the same for every append, so that all of them add one capability line
    complete=False, limits=("what passed through this proxy, and nothing else that the server did",)
)

Append = Callable[[Imported], object]


class Writer:
    """Takes events without ever waiting, and appends them in the order in which they came.

    An append that fails is tried again with the next batch; `failure` says what the last one said.
    """

    def __init__(self, append: Append, *, context: "Context", producer: str) -> None:
        self._append = append
        self._context = context
        self._producer = producer
        self._waiting: queue.Queue[Observation | None] = queue.Queue(MOST_WAITING)
        self._dropped = 0
        self._told_dropped = 0
        self._unwritten: list[Observation] = []
        self._thread = threading.Thread(target=self._run, name="paritrace-proxy-writer", daemon=True)
        self.failure: ParitraceError | None = None
        self.num_written = 0

    def start(self) -> None:
        """Begins to write."""
        self._thread.start()

    def take(self, event: Observation) -> None:
        """Takes an event; where too many wait it is dropped, and the number is written."""
        try:
            self._waiting.put_nowait(event)
        except queue.Full:
            self._dropped += 1

    def close(self) -> None:
        """Writes what waits, and ends."""
        try:
            self._waiting.put(None, timeout=ENDS_WITHIN_SECONDS)
        except queue.Full:
            return
        self._thread.join(ENDS_WITHIN_SECONDS)

    @property
    def num_unwritten(self) -> int:
        """Events that were taken and are not in the artifact."""
        return len(self._unwritten) + self._waiting.qsize() + self._dropped - self._told_dropped

    def _run(self) -> None:
        ended = False
        while not ended:
            batch, ended = self._batch()
            self._write([*self._unwritten, *batch])

    def _batch(self) -> tuple[list[Observation], bool]:
        """The next events, at most MOST_AT_ONCE of them; waits for the first, then a little while for more."""
        batch: list[Observation] = []
        until: float | None = None
        while len(batch) < MOST_AT_ONCE:
            try:
                event = self._waiting.get(timeout=None if until is None else max(0.0, until - time.monotonic()))
            except queue.Empty:
                return batch, False
            if event is None:
                return batch, True
            batch.append(event)
            until = time.monotonic() + GATHERED_SECONDS if until is None else until
        return batch, False

    def _write(self, events: list[Observation]) -> None:
        told = self._told_dropped
        if self._dropped > told:
            events.append(self._loss(self._dropped - told))
            self._told_dropped = self._dropped
        if not events:
            return
        self._unwritten = events[-MOST_WAITING:]
        self._dropped += len(events) - len(self._unwritten)
        try:
            self._append(Imported(attachments=(), events=_drawn(self._unwritten)))
        except ParitraceError as error:
            self.failure = error
            return
        self.num_written += len(self._unwritten)
        self._unwritten, self.failure = [], None

    def _loss(self, count: int) -> Loss:
        return Loss(
            context=self._context,
            event_id=f"{self._producer}:dropped:{self._dropped}",
            source=self._producer,
            what="proxied requests",
            reason=LossReason.DROPPED,
            count=count,
        )


def _drawn(events: Iterable[Observation]) -> Generator[Observation, None, Account]:
    """Events as a source."""
    yield from events
    return ACCOUNT
