"""Where everything that happens is written: the journal, the ring of events, what is to be warned of (SE-14, SE-15)."""

from paritrace.clock import SYSTEM, Clock
from paritrace.errors import HostError
from paritrace.session.commands import Body
from paritrace.session.coordinator.journaling import JournalWriter
from paritrace.session.coordinator.ring import Ring
from paritrace.session.journal import WARNING

METRICS = "metrics"  # an event alone: the journal has no line per step


class Books:
    """A journal that cannot be written stops nobody's training: what it lacks is counted, warned of and told again."""

    def __init__(self, journal: JournalWriter, ring: Ring, *, clock: Clock = SYSTEM) -> None:
        self._journal = journal
        self.ring = ring
        self._clock = clock
        self._unwritten = 0
        self._warnings: dict[str, None] = {}

    @property
    def warnings(self) -> tuple[str, ...]:
        """Everything warned of so far, each once."""
        lost = (f"{self._unwritten} lines of the journal could not be written",) if self._unwritten else ()
        return (*self._warnings, *lost)

    def line(self, what: str, facts: Body, *, generation: int, durable: bool = False) -> None:
        """Write a line and tell it as an event."""
        try:
            if self._unwritten:
                lost = {"words": f"{self._unwritten} lines before this one could not be written"}
                self._journal.write(WARNING, lost, generation=generation)
                self._unwritten = 0
            self._journal.write(what, facts, generation=generation, durable=durable)
        except HostError:
            self._unwritten += 1
        self.event(what, {**facts, "generation": generation})

    def event(self, what: str, facts: Body) -> None:
        """Tell an event that has no line."""
        self.ring.put(what, facts, unix_ns=self._clock.wall_ns())

    def warn(self, words: str, *, generation: int, rank: int | None = None) -> None:
        """Warn once of each thing."""
        told = words if rank is None else f"rank {rank}: {words}"
        if told not in self._warnings:
            self._warnings[told] = None
            self.line(WARNING, {"words": told}, generation=generation)

    def close(self) -> None:
        """Force the journal to disk."""
        self._journal.close()
