"""The gate between two steps: the one comparison that a step costs, and where the work thread stops (SE-4, SE-6).

Two threads meet here. The *work thread* comes to `boundary` before every step. The *control thread* lowers and raises
the limit, hands over what is to be done, and says when to leave. Both hold the one lock; a step that may begin takes
it once, compares, and is gone.
"""

import threading
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import NoReturn, Protocol

from msgspec import Struct

from paritrace.clock import SYSTEM, Clock
from paritrace.errors import InternalError
from paritrace.session.commands import Body, Reason
from paritrace.session.rank_events import Broke, Do, Done, RankEvent, RunUntil, Stepped

NEVER = 1 << 62  # no step is as high
WAKE_SECONDS = 1.0  # a parked thread looks again by itself, should a word to it be lost
DURATIONS = 512  # the last so many steps give the rolling p99: some seconds to some minutes of training
ENOUGH_STEPS = 20  # fewer have no p99 to speak of


class Leaving(BaseException):
    """The work thread is to end. No `except Exception` of a workload catches it (SE-34)."""


class Between(Protocol):
    """What is done on the work thread between two steps beside the commands: captures, autosave, previews."""

    def due(self) -> int:
        """The lowest step at which it wants to be asked; NEVER where there is none."""
        ...

    def arrived(self, step: int) -> None:
        """The steps below `step` are done."""
        ...

    def departs(self, step: int) -> None:
        """`step` begins now."""
        ...

    def ended(self, step: int) -> Body:
        """The run has reached its target; return what is to be told of its end."""
        ...

    def done(self, item: Do) -> None:
        """A command's work is done and told; what may follow it without anybody waiting is done now."""
        ...


class NothingBetween:
    """No captures, no autosave, no previews."""

    def due(self) -> int:
        return NEVER

    def arrived(self, step: int) -> None:
        """Nothing is wanted."""

    def departs(self, step: int) -> None:
        """Nothing is wanted."""

    def ended(self, step: int) -> Body:
        return {}

    def done(self, item: Do) -> None:
        """Nothing is wanted."""


class Pace(Struct, frozen=True):
    """How the work goes, for the heartbeat (SE-13)."""

    step: int  # the one under way, or the one before which the work is parked: as many are done
    progress_age_seconds: float
    step_p99_seconds: float | None


class Gate:
    """Where the work thread may go on, stops, does what it is given, or leaves."""

    def __init__(
        self,
        *,
        tell: Callable[[RankEvent], None],
        perform: Callable[[Do], Done],
        drain: Callable[[], None],
        between: Between | None = None,
        clock: Clock = SYSTEM,
    ) -> None:
        """`tell`: a word to the control thread; `drain`: waits until the accelerator's queue is empty (SE-6)."""
        self._tell = tell
        self._perform = perform
        self._drain = drain
        self._between: Between = NothingBetween() if between is None else between
        self._now = clock.monotonic_ns
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._items: deque[Do] = deque()
        self._leaving: str | None = None
        self._broken = False
        self._freed = False  # for good: whatever the control thread or a loop that begins still says
        self._stepping = False  # the work is in a step, so that the next boundary ends one
        self._limit = 0
        self._target = NEVER  # of the run
        self._due = 0  # the lowest step at which something is to be done between
        self._stop = 0  # the lesser of the two, or 0 to halt: all that a step is compared with
        self._next = 0
        self._owes_word = False  # the control thread waits to be told where the work stops
        self._standing = (0, 0)  # command_epoch and configuration revision now
        self._admitted = (0, 0)  # those under which the run was admitted
        self._moved_ns = self._now()
        self._durations = [0] * DURATIONS
        self._num_durations = 0

    def boundary(self, step: int, /) -> int:
        """Return the step that begins now: `step`, unless a load has set another one.

        Below the limit this is one lock and one comparison (PF-17: at most 5 us). At it the device is drained, the
        control thread told, and what it hands over is done here until the work may go on.

        Raises:
            Leaving: the session closes or stops; not an `Exception`.
            InternalError: `step_fence`: the epoch or the revision is not the one this run was admitted under (SE-4).
        """
        now = self._now()
        with self._lock:
            if self._stepping:
                self._durations[self._num_durations % DURATIONS] = now - self._moved_ns
                self._num_durations += 1
            self._moved_ns = now
            if step < self._stop:
                self._next = step + 1
                return step
            self._next, self._stepping = step, False
        return self._stopped(step)

    def broke(self, step: int, reasons: tuple[Reason, ...], /) -> NoReturn:
        """Tell that `step` raised and begin no other one; what is handed over (closing) is still done here."""
        with self._lock:
            self._broken, self._stop, self._next = True, 0, step
        self._tell(Broke(step, reasons))
        self._stopped(step)
        raise AssertionError("a broken gate lets no step begin")

    def stands_before(self, step: int, /) -> None:
        """The work will come to this step first: what is built goes on from a checkpoint (SE-37)."""
        with self._lock:
            self._next = self._limit = step
            self._set_stop()

    def moved(self) -> None:
        """The work has moved without a step: a unit of loading, building or saving is done (SE-13)."""
        self._moved_ns = self._now()

    @property
    def leaving(self) -> str | None:
        """Why the work thread is to leave; None while it is not."""
        return self._leaving

    @property
    def admitted(self) -> tuple[int, int]:
        """Command_epoch and configuration revision under which the present run was admitted."""
        return self._admitted

    # Of the control thread:

    @contextmanager
    def held(self) -> Generator[int, None, None]:
        """Hold the lock of the step: no step begins meanwhile. Gives the step that the work comes to next.

        Inside, `limit`, `reserve`, `run_until`, `stand` and `give` may be called, and by the holder alone.
        """
        with self._changed:
            yield self._next
            self._changed.notify_all()

    def limit(self, step: int, /) -> None:
        """Steps below `step` may begin. Called while held."""
        if step != self._limit:
            self._owes_word = True
        self._limit = step
        self._set_stop()

    def reserve(self) -> int:
        """Let no further step begin, and return the first that has not. Called while held."""
        self.limit(self._next)
        return self._next

    def run_until(self, run: RunUntil, /) -> None:
        """Begin or resume stepping to a target under what was admitted. Called while held."""
        self._admitted = (run.epoch, run.config_revision)
        self._owes_word = True
        self._limit = self._target = run.target
        self._set_stop()

    def stand(self, *, epoch: int, config_revision: int) -> None:
        """Say what holds now: where it is not what the run was admitted under, no step begins. Called while held."""
        self._standing = (epoch, config_revision)
        self._set_stop()

    def give(self, item: Do, /) -> None:
        """Hand over what the work thread is to do at its next boundary. Called while held."""
        self._items.append(item)
        self._set_stop()

    def leave(self, why: str, /) -> None:
        """Have the work thread leave: at once where it is parked, else at its next boundary."""
        with self._changed:
            self._leaving = why
            self._stop = 0
            self._changed.notify_all()

    def free(self) -> None:
        """Let all steps begin from now on, whatever was and will be asked: control is given up, training goes on."""
        with self._changed:
            self._freed = True
            self._set_stop()
            self._changed.notify_all()

    def pace(self) -> Pace:
        """How the work goes; read by the heartbeat."""
        with self._lock:
            known = min(self._num_durations, DURATIONS)
            durations = sorted(self._durations[:known])
            step = self._next - 1 if self._stepping else self._next
            age_ns = self._now() - self._moved_ns
        p99 = durations[min(known - 1, known * 99 // 100)] / 1e9 if known >= ENOUGH_STEPS else None
        return Pace(step, age_ns / 1e9, p99)

    # Of the work thread, where it stops:

    def _stopped(self, step: int) -> int:
        self._between.arrived(step)
        while True:
            item = self._item_or_none()
            if item is not None:
                step = self._done(item, step)
            elif self._passes(step):
                self._between.departs(step)
                with self._lock:
                    self._set_stop(due=self._between.due())
                return step
            elif self._must_tell():
                self._drain()
                self._tell(Stepped(step, self._between.ended(step) if step >= self._target else {}))
            else:
                self._wait(step)

    def _item_or_none(self) -> Do | None:
        with self._lock:
            if self._leaving is not None:
                raise Leaving(self._leaving)
            return self._items.popleft() if self._items else None

    def _done(self, item: Do, step: int) -> int:
        done = self._perform(item)
        with self._lock:
            if done.step is not None:  # what was admitted was admitted from another step on
                step = self._limit = done.step
                self._owes_word = False
            self._next = step
            self._moved_ns = self._now()
        self._tell(done)
        self._between.done(item)
        return step

    def _passes(self, step: int) -> bool:
        """Whether `step` begins; from then on it counts as begun, so that a reservation names the one after it."""
        with self._lock:
            if self._broken or step >= self._limit or self._items or self._leaving is not None:
                return False
            if self._standing != self._admitted:
                raise InternalError(
                    f"step {step} was admitted under command_epoch and revision {self._admitted},"
                    f" now they are {self._standing}",
                    code="step_fence",
                    fix="report it with the session's journal.jsonl",
                )
            self._next, self._stepping = step + 1, True
            self._moved_ns = self._now()
            return True

    def _must_tell(self) -> bool:
        with self._lock:
            owes, self._owes_word = self._owes_word, False
            return owes and not self._broken

    def _wait(self, step: int) -> None:
        with self._changed:
            if not self._items and self._leaving is None and (self._broken or step >= self._limit):
                self._changed.wait(WAKE_SECONDS)

    def _set_stop(self, *, due: int | None = None) -> None:
        """What steps are compared with from now on; the lock is held. `due` is the work thread's to say."""
        self._due = self._due if due is None else due
        if self._freed:
            self._items.clear()
            self._limit, self._standing = NEVER, self._admitted
        halted = self._broken or bool(self._items) or self._leaving is not None or self._standing != self._admitted
        self._stop = 0 if halted else min(self._limit, self._due)
