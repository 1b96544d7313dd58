"""Writing what the proxy saw into the artifact, behind the traffic: a bounded queue and one thread (IN-15, IN-5)."""

import queue
import threading
import time
from collections import Counter
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
OF_ONE_EVENT = ("bad_event", "event_conflict")  # refusals that the others of a batch have no part in
ACCOUNT = Account(  # the same for every append, so that all of them add one capability line
    complete=False, limits=("what passed through this proxy, and nothing else that the server did",)
)

Append = Callable[[Imported], object]


class Writer:
    """Takes events without ever waiting, and appends them in the order in which they came.

    An append that fails is tried again with the next batch; `failure` says what the last one said. Where one event is
    the reason, or an error that nobody foresaw, it is looked for by halves and left out; it is counted as a loss, with
    the kind of the error. No error ends the writing.
    """

    def __init__(self, append: Append, *, context: "Context", producer: str) -> None:
        self._append = append
        self._context = context
        self._producer = producer
        self._waiting: queue.Queue[Observation | None] = queue.Queue(MOST_WAITING)
        self._dropped = 0
        self._told_dropped = 0
        self._lost: Counter[str] = Counter()  # by why, and not yet told; `lost` may be called by the traffic's thread
        self._num_lost = 0
        self._counting = threading.Lock()
        self._unwritten: list[Observation] = []
        self._thread = threading.Thread(target=self._run, name="paritrace-proxy-writer", daemon=True)
        self.failure: Exception | None = None
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

    def lost(self, why: str) -> None:
        """Counts an event that could not be made or written; `why` is the kind of an error, never its message."""
        with self._counting:
            self._lost[why] += 1

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
        if self._lost:  # of the last batch
            self._write(list(self._unwritten))

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
        events += self._losses()
        if not events:
            return
        self._unwritten = events[-MOST_WAITING:]
        self._dropped += len(events) - len(self._unwritten)
        self._unwritten = self._left_of(self._unwritten)
        if not self._unwritten:
            self.failure = None

    def _left_of(self, events: list[Observation]) -> list[Observation]:
        """Appends events, and returns those that are to be tried again."""
        try:
            self._append(Imported(attachments=(), events=_drawn(events)))
        except Exception as error:  # noqa: BLE001  what was seen of the traffic is kept, whatever failed here
            self.failure = error
            if not _is_of_one_event(error):
                return events
            if len(events) == 1:
                self.lost(_kind_of(error))
                return []
            half = len(events) // 2
            return [*self._left_of(events[:half]), *self._left_of(events[half:])]
        self.num_written += len(events)
        return []

    def _losses(self) -> list[Observation]:
        """What was lost since it was last told."""
        found: list[Observation] = []
        dropped = self._dropped - self._told_dropped
        if dropped:
            self._told_dropped = self._dropped
            found.append(self._loss(f"dropped:{self._dropped}", LossReason.DROPPED, dropped))
        with self._counting:
            lost, self._lost = self._lost, Counter()
        for why, count in sorted(lost.items()):
            self._num_lost += count
            found.append(self._loss(f"lost:{self._num_lost}", LossReason.INVALID, count, {"error": why}))
        return found

    def _loss(self, name: str, reason: LossReason, count: int, metadata: dict[str, object] | None = None) -> Loss:
        return Loss(
            context=self._context,
            event_id=f"{self._producer}:{name}",
            source=self._producer,
            what="events of proxied requests",
            reason=reason,
            count=count,
            metadata=metadata or {},
        )


def _is_of_one_event(error: Exception) -> bool:
    """Whether an append would go through without one of its events; of an error that nobody foresaw, perhaps."""
    if isinstance(error, ParitraceError):
        return error.code in OF_ONE_EVENT
    return not isinstance(error, OSError | MemoryError)


def _kind_of(error: Exception) -> str:
    return error.code if isinstance(error, ParitraceError) else type(error).__name__


def _drawn(events: Iterable[Observation]) -> Generator[Observation, None, Account]:
    """Events as a source."""
    yield from events
    return ACCOUNT
