"""Publishes the ranks of a node in a thread of their own while they write, and all that is left at the end (ST-7)."""

import threading
from collections.abc import Callable
from pathlib import Path

from paritrace.clock import SYSTEM, Clock
from paritrace.errors import HostError, ParitraceError
from paritrace.files import LOCAL, Files
from paritrace.store.schedule import delay_seconds, first_delay_seconds
from paritrace.store.syncing import Syncer, SyncReport

LOOK_SECONDS = 0.2  # how often the folder is looked at for new ranks, and the end for its sign
END_SECONDS = 660.0  # a sync that is under way ends by its own deadlines: a lock's 600 s, then one bundle
_RANK = "rank-"


class NodePublisher:
    """The ranks that appear in a folder `STAGING/RUN_ID`, or one of them, each published at its interval.
    Trouble of one rank is kept in `troubles` and tried again after the interval; it never reaches the workload. The
    thread is started by `start` and ended by `stop`; `final` is for afterwards.
    """

    def __init__(
        self,
        folder: Path,
        syncer_of: Callable[[int], Syncer],
        *,
        node_id: str,
        interval_seconds: float,
        files: Files = LOCAL,
        clock: Clock = SYSTEM,
    ) -> None:
        self.troubles: dict[int, ParitraceError] = {}
        self.first: Callable[[Syncer], None] | None = None  # done once, with the first rank's syncer
        self.only: tuple[int, int] | None = None  # this rank alone, and its number on the node
        self._folder = folder
        self._syncer_of = syncer_of
        self._node_id = node_id
        self._interval_seconds = interval_seconds
        self._files = files
        self._clock = clock
        self._syncers: dict[int, Syncer] = {}
        self._due_ns: dict[int, int] = {}
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._work, name="paritrace-store", daemon=True)

    def start(self) -> None:
        """Begin to publish."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread after the sync that is under way.

        Raises:
            HostError: Failed, code `sync_stuck`.
        """
        self._ending.set()
        self._thread.join(END_SECONDS)
        if self._thread.is_alive():
            raise HostError(
                f"a sync of {self._folder} had not ended after {END_SECONDS:.0f} s",
                code="sync_stuck",
                fix="the target does not answer: end this command; `paritrace store sync --final` publishes the rest",
            )

    def final(self) -> dict[int, SyncReport | ParitraceError]:
        """Publish everything that is there now, rank by rank; what stopped one rank stands in its place."""
        return {rank: self._final(rank) for rank in self.ranks()}

    def ranks(self) -> list[int]:
        """The ranks that write here, by number; none where the folder cannot be read."""
        try:
            names = [path.name for path in self._files.list(self._folder)]
        except HostError:
            return []
        numbers = (name.removeprefix(_RANK) for name in names if name.startswith(_RANK))
        found = sorted(int(number) for number in numbers if number.isdecimal())
        return found if self.only is None else [rank for rank in found if rank == self.only[0]]

    def _final(self, rank: int) -> SyncReport | ParitraceError:
        try:
            return self._synced(rank).final()
        except ParitraceError as error:
            return error

    def _work(self) -> None:
        while not self._ending.wait(LOOK_SECONDS):
            for number, rank in enumerate(self.ranks()):
                if not self._ending.is_set():
                    self._look_at(rank, local_rank=number if self.only is None else self.only[1])

    def _look_at(self, rank: int, *, local_rank: int) -> None:
        now = self._clock.monotonic_ns()
        delay = first_delay_seconds(self._node_id, local_rank=local_rank, interval_seconds=self._interval_seconds)
        if now < self._due_ns.setdefault(rank, now + round(delay * 1e9)):
            return
        more = False
        try:
            more = self._synced(rank).once().more
            self.troubles.pop(rank, None)
        except ParitraceError as error:
            self.troubles[rank] = error
        wait = delay_seconds(more=more, interval_seconds=self._interval_seconds)
        self._due_ns[rank] = self._clock.monotonic_ns() + round(wait * 1e9)

    def _synced(self, rank: int) -> Syncer:
        if rank not in self._syncers:
            self._syncers[rank] = self._syncer_of(rank)
        syncer = self._syncers[rank]
        first, self.first = self.first, None
        if first is not None:
            try:
                first(syncer)
            except ParitraceError:
                self.first = first  # again with the next sync
                raise
        return syncer
