"""The control thread of a rank: holds the machine and the line, answers at once, beats every second (SE-2, SE-13)."""

import threading
from queue import Empty, SimpleQueue
from typing import Protocol

from msgspec import DecodeError, Struct, field

from paritrace.clock import SYSTEM, Clock
from paritrace.errors import InternalError
from paritrace.session import rank_machine
from paritrace.session.commands import Body
from paritrace.session.engines.seam import RankLine
from paritrace.session.messages import Beat, Ended, FromRank, Joined, RoundName, encoded, to_rank
from paritrace.session.rank.stepping import Gate
from paritrace.session.rank_events import (
    Cut,
    Do,
    Leave,
    Limit,
    RankAction,
    RankEvent,
    Received,
    RunUntil,
    Send,
)
from paritrace.session.states import RankState

BEAT_SECONDS = 1.0  # five of them missed make a rank unresponsive (SE-13)


class WorkView(Struct, frozen=True):
    """What the work says of itself for a heartbeat."""

    phase: str = ""
    deadline_seconds: float | None = None
    progress: Body = field(default_factory=dict[str, object])
    metrics: Body = field(default_factory=dict[str, object])
    metrics_step: int | None = None
    metrics_epoch: int | None = None
    metrics_revision: int | None = None
    warnings: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    checkpoint: Body = field(default_factory=dict[str, object])
    preview: Body = field(default_factory=dict[str, object])
    inputs: Body = field(default_factory=dict[str, object])
    scheduled: Body = field(default_factory=dict[str, object])


class Work(Protocol):
    """The side of the work thread, as the control thread sees it. No method waits."""

    def view(self) -> WorkView:
        """What is to be told of the work now."""
        ...

    def prepare(self, item: Do) -> None:
        """Begin a preparation on a thread of its own; its `Done` comes as a word."""
        ...

    def leave(self, why: str, *, cut: bool) -> None:
        """End the process, or give up control and train on; `cut`: the coordinator is gone, nobody else ends it."""
        ...


class Words:
    """What other threads say to the control thread."""

    def __init__(self, line: RankLine) -> None:
        self._queue: SimpleQueue[RankEvent] = SimpleQueue()
        self._line = line

    def say(self, event: RankEvent, /) -> None:
        """Hand over an event; from any thread, never waits."""
        self._queue.put(event)
        self._line.wake()

    def next(self) -> RankEvent | None:
        """Return what was said first, None where nothing is left."""
        try:
            return self._queue.get_nowait()
        except Empty:
            return None


class Control:
    """Shell of the rank's machine. `run` is the body of its thread, which owns everything here."""

    def __init__(
        self, line: RankLine, joined: Joined, *, gate: Gate, words: Words, work: Work, clock: Clock = SYSTEM
    ) -> None:
        self._line = line
        self._joined = joined
        self._gate = gate
        self._words = words
        self._work = work
        self._clock = clock
        self._rank = rank_machine.began(
            rank=joined.rank,
            world_size=joined.world_size,
            generation=joined.generation,
            capabilities=joined.capabilities,
        )
        self._unsent: list[FromRank] = []
        self._rests = False
        self._leaving: str | None = None
        self._left = False
        self._next_beat_ns = 0

    def start(self) -> threading.Thread:
        """Start the thread. It is a daemon: it never keeps a process whose work has ended."""
        thread = threading.Thread(target=self.run, name="paritrace-control", daemon=True)
        thread.start()
        return thread

    def beat_soon(self) -> None:
        """From the work thread: have the next heartbeat sent before any word that is said after this."""
        self._next_beat_ns = 0
        self._line.wake()

    def run(self) -> None:
        """Join, then take messages and words until the rank leaves."""
        try:
            self._line.send(encoded(self._joined))
            while not self._left:
                self._beat_if_due()
                self._take_in(self._line.receive(self._seconds_to_beat()))
        except (
            OSError,
            DecodeError,
        ) as error:  # closed, or what comes is none of our messages: nobody is there to obey
            self._cut(f"the coordinator is gone ({type(error).__name__})")
        except InternalError as error:
            self._leave(error.message, cut=False)
        except Exception as error:  # noqa: BLE001  a rank that nobody can reach any more must not seem to be there
            self._leave(f"its control thread failed: {type(error).__name__}: {error}", cut=True)

    def _take_in(self, messages: list[bytes] | None) -> None:
        for data in messages or ():
            if self._left:  # what follows a word to leave is for nobody
                return
            with self._gate.held() as step:
                self._turn(Received(to_rank(data), step))
            self._after_turn()
        if not self._left:
            self._beat_if_due()  # what is to be told at once is told before any later word
        while not self._left and (event := self._words.next()) is not None:
            with self._gate.held():
                self._turn(event)
            self._after_turn()
        if messages is None:
            self._cut("the coordinator is gone")

    def _cut(self, why: str) -> None:
        """Nothing can be sent any more; the machine decides what follows."""
        if self._left:
            return
        with self._gate.held():
            self._turn(Cut())
        self._unsent.clear()
        self._leave(self._leaving or why, cut=True)

    def _turn(self, event: RankEvent) -> None:
        """Step the machine and do what concerns the gate; the gate is held, so no step begins in between."""
        before = self._rank.state
        self._rank, actions = rank_machine.step(self._rank, event)
        self._gate.stand(epoch=self._rank.epoch, config_revision=self._rank.config_revision)
        for action in actions:
            self._act(action)
        if self._rank.state is not before:
            self._next_beat_ns = 0  # told at every change of state
        self._rests = before is RankState.RUNNING and self._rank.state is RankState.IDLE

    def _act(self, action: RankAction) -> None:
        match action:
            case Send(message=message):
                self._unsent.append(message)  # written once the gate is free: a full line must not hold up a step
            case Do(name=RoundName.PREPARE):
                self._work.prepare(action)
            case Do():
                self._gate.give(action)
            case Limit(step=step):
                self._gate.limit(step)
            case RunUntil():
                self._gate.run_until(action)
            case Leave(why=why):
                self._leaving = why

    def _after_turn(self) -> None:
        unsent, self._unsent = self._unsent, []
        if self._rests and any(isinstance(message, Ended) for message in unsent):
            self._beat_if_due()  # who waits for the end of a run finds what its last step measured
        for message in unsent:
            self._line.send(encoded(message))
        if self._leaving is not None:
            self._leave(self._leaving, cut=False)

    def _leave(self, why: str, *, cut: bool) -> None:
        if not self._left:
            self._left = True
            self._work.leave(why, cut=cut)

    def _seconds_to_beat(self) -> float:
        return max((self._next_beat_ns - self._clock.monotonic_ns()) / 1e9, 0.0)

    def _beat_if_due(self) -> None:
        now = self._clock.monotonic_ns()
        if now >= self._next_beat_ns:
            self._next_beat_ns = now + int(BEAT_SECONDS * 1e9)
            self._line.send(encoded(self._beat()))

    def _beat(self) -> Beat:
        rank, pace, view = self._rank, self._gate.pace(), self._work.view()
        return Beat(
            generation=rank.generation,
            rank=rank.rank,
            epoch=rank.epoch,
            state=rank.state,
            step=pace.step,
            pending=0 if rank.target is None else max(rank.target - pace.step, 0),
            config_revision=rank.config_revision,
            phase=view.phase,
            progress_age_seconds=pace.progress_age_seconds,
            step_p99_seconds=pace.step_p99_seconds,
            deadline_seconds=view.deadline_seconds,
            progress=view.progress,
            metrics=view.metrics,
            metrics_step=view.metrics_step,
            metrics_epoch=view.metrics_epoch,
            metrics_revision=view.metrics_revision,
            warnings=view.warnings,
            checkpoint=view.checkpoint,
            preview=view.preview,
            inputs=view.inputs,
            scheduled=view.scheduled,
            capabilities=view.capabilities,
        )
