"""The main thread of a coordinator: what happens goes into the machine, what the machine says is done (SE-2, SE-3)."""

import queue
from collections.abc import Callable, Iterator
from typing import assert_never

import msgspec

from paritrace.clock import SYSTEM, Clock
from paritrace.errors import EvidenceError, HostError
from paritrace.session.commands import Body
from paritrace.session.coordinator.books import METRICS, Books
from paritrace.session.coordinator.configurations import Configurations
from paritrace.session.coordinator.desk import Desk
from paritrace.session.coordinator.failing import FailedGeneration
from paritrace.session.coordinator.generations import Generations, Started
from paritrace.session.coordinator.ledger import Ledger
from paritrace.session.coordinator.sampling import SampleWriter
from paritrace.session.coordinator.snapshot import Seen
from paritrace.session.coordinator.timers import Timers
from paritrace.session.coordinator_events import (
    CoordinatorAction,
    CoordinatorEvent,
    Deny,
    Elapsed,
    FailStop,
    Gone,
    Heard,
    Keep,
    Record,
    SetTimer,
    Settle,
    StartRanks,
    Survey,
    Tell,
    Written,
)
from paritrace.session.coordinator_machine import step
from paritrace.session.coordinator_record import Coordinator
from paritrace.session.engines.seam import FromEngine
from paritrace.session.failure import exit_words
from paritrace.session.journal import EXIT
from paritrace.session.messages import (
    Answer,
    Autosaved,
    Beat,
    Ended,
    FromRank,
    Joined,
    RoundName,
    Verdict,
    encoded,
    from_rank,
)

LOOKED_AT_EVERY_SECONDS = 1.0  # ranks beat once a second; a command wakes the wait at once


class Parts(msgspec.Struct, frozen=True):
    """What the loop works with."""

    session_id: str
    engine: str
    generations: Generations
    books: Books
    samples: SampleWriter
    ledger: Ledger
    desk: Desk
    configurations: Configurations
    failed: FailedGeneration
    keep: Callable[[Keep], Written]
    survey: Callable[[Survey], None]
    beginning: Callable[[StartRanks, Coordinator], Started]


class Loop:
    """Runs on the main thread, since ranks are started from it; everything else reaches it through the desk's inbox."""

    def __init__(self, machine: Coordinator, parts: Parts, *, clock: Clock = SYSTEM) -> None:
        self.machine = machine
        self._parts = parts
        self._clock = clock
        self._timers = Timers(clock)
        self._heard_ns: dict[int, int] = {}
        self._pending: queue.SimpleQueue[CoordinatorEvent] = queue.SimpleQueue()

    def run_until_over(self, first: CoordinatorEvent) -> None:
        """Begin with an event, and go on until the session is closed."""
        self.take(first)
        while not self.machine.over:
            self.turn()

    def turn(self) -> None:
        """Wait for the next thing that happens, and take in all that has."""
        for brought in self._parts.generations.receive(self._timers.next_in(LOOKED_AT_EVERY_SECONDS)):
            for event in self._from_engine(brought):
                self.take(event)
        for event in self._inbox():
            self.take(event)
        for timer in self._timers.due():
            self.take(Elapsed(timer))
        self.settle_configurations()
        self._publish()

    def settle_configurations(self, *, at_once: bool = False) -> None:
        """Write the configurations that the disk had no room for, once it has some."""
        for revision in self._parts.configurations.settle(at_once=at_once):
            self._warn_of_configuration(revision, "is kept now", self.machine.generation)

    def take(self, event: CoordinatorEvent) -> None:
        """Give an event to the machine and do what it says; what comes of doing it follows at once."""
        self._take_one(event)
        while not self._pending.empty():
            self._take_one(self._pending.get_nowait())

    def _take_one(self, event: CoordinatorEvent) -> None:
        self.machine, actions = step(self.machine, event)
        self._publish()
        for action in actions:
            self._perform(action)
        for action in actions:  # last, since it takes seconds: whoever waits has been told by then
            if isinstance(action, FailStop):
                self._stop(action)

    def _publish(self) -> None:
        parts = self._parts
        parts.desk.publish(
            Seen(
                session_id=parts.session_id,
                engine=parts.engine,
                machine=self.machine,
                heard_ns=dict(self._heard_ns),
                warnings=parts.books.warnings,
                root_cause=parts.failed.root_cause,
                failure_report=parts.failed.report,
                turned_away=parts.generations.turned_away,
            )
        )

    def _inbox(self) -> Iterator[CoordinatorEvent]:
        while True:
            try:
                yield self._parts.desk.inbox.get_nowait()
            except queue.Empty:
                return

    def _from_engine(self, brought: FromEngine) -> Iterator[CoordinatorEvent]:
        if brought.data is None:
            yield self._gone(brought.rank)
            return
        try:
            message = from_rank(brought.data)
        except msgspec.DecodeError as error:
            self._parts.generations.kill_one(brought.rank)
            yield Gone(brought.rank, f"it wrote what is no message: {error}")
            return
        if message.rank != brought.rank or (isinstance(message, Joined) and not self._parts.generations.is_of(message)):
            self._parts.generations.kill_one(brought.rank)
            yield Gone(brought.rank, "it belongs to another job")
            return
        self._heard_ns[brought.rank] = self._clock.monotonic_ns()
        self._note(message)
        yield Heard(brought.rank, message)

    def _gone(self, rank: int) -> Gone:
        evidence = self._parts.generations.evidence(rank)
        words = "it was not started" if evidence is None else exit_words(evidence)
        self._line(EXIT, {"rank": rank, "words": words, "step": self.machine.ranks[rank].step})
        return Gone(rank, words, self.machine.generation)

    def _note(self, message: FromRank) -> None:
        """Keep what a rank says beside the protocol: warnings, metrics, configurations."""
        match message:
            case Beat():
                for words in message.warnings:
                    self._parts.books.warn(words, generation=message.generation, rank=message.rank)
                if message.rank == 0:
                    self._sample(message)
            case Answer() if message.rank == 0 and message.name is RoundName.ACT and message.verdict is Verdict.YES:
                self._keep_configuration(message)
            case Ended() if message.rank == 0:
                self._keep_configuration(message)
            case Answer() | Ended() | Joined() | Autosaved():
                pass
            case _:
                assert_never(message)

    def _sample(self, beat: Beat) -> None:
        """Keep metrics of a step that no heartbeat told before: as an event, and as a sample on disk."""
        try:
            is_new = self._parts.samples.take(beat)
        except (HostError, EvidenceError) as error:
            is_new = True
            self._parts.books.warn(f"metrics are not kept: {error.message}", generation=beat.generation)
        if is_new:
            self._parts.books.event(METRICS, {"step": beat.metrics_step, "metrics": beat.metrics})

    def _keep_configuration(self, message: Answer | Ended) -> None:
        try:
            self._parts.configurations.keep(message.config_revision, message.facts)
        except HostError as error:
            words = f"is held until the disk takes it: {error.message}"
            self._warn_of_configuration(message.config_revision, words, message.generation)

    def _warn_of_configuration(self, revision: int, words: str, generation: int) -> None:
        self._parts.books.warn(f"the configuration of revision {revision} {words}", generation=generation)

    def _perform(self, action: CoordinatorAction) -> None:
        parts = self._parts
        match action:
            case Tell():
                parts.generations.send(action.rank, encoded(action.message))
            case Settle():
                parts.ledger.settle(action.reply)
            case Deny():
                parts.books.event("denied", {"id": action.command.id, "words": action.reason.words})
            case Record():
                self._line(action.what, action.facts, durable=action.durable)
            case SetTimer():
                self._timers.set(action.timer, action.seconds)
            case Keep():
                self._pending.put(parts.keep(action))
            case Survey():
                parts.survey(action)
            case FailStop():
                pass  # done last, by `_take_one`
            case StartRanks():
                self._start(action)
            case _:
                assert_never(action)

    def _stop(self, action: FailStop) -> None:
        brought = self._parts.failed.stop(action, self.machine, self._heard_ns, reported=self._publish)
        for one in brought:
            for event in self._from_engine(one):
                self._pending.put(event)

    def _start(self, action: StartRanks) -> None:
        parts = self._parts
        parts.failed.forget()
        self._heard_ns.clear()
        try:
            parts.generations.start(parts.beginning(action, self.machine))
        except HostError as error:
            for rank in parts.generations.numbers:
                self._pending.put(Gone(rank, error.message, action.generation))

    def _line(self, what: str, facts: Body, *, durable: bool = False) -> None:
        self._parts.books.line(what, facts, generation=self.machine.generation, durable=durable)
