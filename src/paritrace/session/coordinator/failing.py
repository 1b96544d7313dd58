"""At a fail-stop: what the coordinator knows of every rank goes into the report, then all ranks end (SE-12)."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from paritrace.clock import SYSTEM, Clock
from paritrace.errors import ParitraceError
from paritrace.files import LOCAL, Files
from paritrace.session.coordinator.books import Books
from paritrace.session.coordinator.generations import Generations
from paritrace.session.coordinator.untold import untold_autosaves
from paritrace.session.coordinator_events import FailStop
from paritrace.session.coordinator_record import Coordinator, Known
from paritrace.session.engines.seam import FromEngine
from paritrace.session.failure import FailureReport, LastHeard
from paritrace.session.opening import read_journal
from paritrace.session.stopping import Failing, Stopped

_NS = 1e9


class FailedGeneration:
    """The failure of the present generation, where it has failed. Used by the main thread alone."""

    def __init__(
        self,
        generations: Generations,
        books: Books,
        *,
        session_id: str,
        directory: str,
        files: Files = LOCAL,
        clock: Clock = SYSTEM,
    ) -> None:
        self._generations = generations
        self._books = books
        self._session_id = session_id
        self._directory = directory
        self._files = files
        self._clock = clock
        self.report: str | None = None  # its name within the session's directory
        self.root_cause: str | None = None
        self._failed: int | None = None

    def stop(
        self, action: FailStop, machine: Coordinator, heard_ns: dict[int, int], *, reported: Callable[[], None]
    ) -> tuple[FromEngine, ...]:
        """Report, then end the ranks within the bounds; `reported`: told as soon as the cause is judged.

        Returns what ranks said meanwhile. A generation fails once: a second fail-stop changes nothing.
        """
        if self._failed == machine.generation:
            return ()
        self._failed = machine.generation

        def judged(report: FailureReport) -> None:
            self.root_cause = report.root_cause
            reported()

        stopped = self._generations.stop_failed(
            self._failing(action, machine, heard_ns), files=self._files, reported=judged, clock=self._clock
        )
        if stopped is None:
            return ()
        self.report = stopped.name
        self._tell(stopped, machine)
        self._tell_autosaves(machine.generation)
        return stopped.brought

    def forget(self) -> None:
        """A new generation begins; the report of the failed one stays where it is."""
        self.report = self.root_cause = None

    def _tell(self, stopped: Stopped, machine: Coordinator) -> None:
        report = stopped.report
        if stopped.name is None:
            self._books.warn(f"the failure report was not written: {stopped.trouble}", generation=machine.generation)
        facts = {"root_cause": report.root_cause, "words": report.root_cause_words, "report": stopped.name}
        self._books.line("failure_report", facts, generation=machine.generation, durable=True)

    def _tell_autosaves(self, generation: int) -> None:
        """Once all ranks have ended: nothing more can be told by them. A journal that cannot be read leaves it so."""
        directory = Path(self._directory)
        with suppress(ParitraceError):
            lines = read_journal(directory, files=self._files).lines
            for facts in untold_autosaves(directory, lines, generation=generation, files=self._files):
                self._books.line("checkpoint", facts, generation=generation, durable=True)

    def _failing(self, action: FailStop, machine: Coordinator, heard_ns: dict[int, int]) -> Failing:
        now = self._clock.monotonic_ns()
        return Failing(
            session_id=self._session_id,
            generation=machine.generation,
            directory=self._directory,
            world_size=machine.world_size,
            code=action.code,
            why=action.why,
            last={known.rank: _last(known, heard_ns.get(known.rank), now, machine) for known in machine.ranks},
            grace_seconds=machine.bounds["term_grace"],
            reap_seconds=machine.bounds["reap"],
        )


def _last(known: Known, heard_ns: int | None, now_ns: int, machine: Coordinator) -> LastHeard:
    age = None if heard_ns is None else (now_ns - heard_ns) / _NS
    beat = known.beat
    return LastHeard(
        state=known.state,
        epoch=known.epoch,
        step=known.step,
        phase="" if beat is None else beat.phase,
        pending=0 if beat is None else beat.pending,
        heartbeat_age_seconds=age,
        progress_age_seconds=None if beat is None or age is None else beat.progress_age_seconds + age,
        findings=known.findings,
        errors=tuple(reason for reason in machine.error if reason.rank == known.rank and reason.code != "rank_ended"),
    )
