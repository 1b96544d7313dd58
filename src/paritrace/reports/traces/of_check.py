"""The trace of a check: the run's own, with what fails and what could not be checked where it is (SU-8, CP-25)."""

from collections.abc import Iterator

from paritrace.compare.checks_result import Checked, Invariant, Outcome
from paritrace.errors import RequestError
from paritrace.reports.formats import OfCheck, Sink
from paritrace.reports.traces.of_run import Note, ranks_of, write_run

TOLD = frozenset({Outcome.FAIL, Outcome.NOT_CHECKABLE})


def write(given: OfCheck, sink: Sink, /) -> None:
    """Writes the run's traces, one rank behind the other.

    Raises:
        RequestError: Refused, `no_run_for_trace`: only the result is at hand.
    """
    run = given.run
    if run is None:
        raise RequestError(
            "a trace shows the calls of the run, and only the check's result is at hand",
            code="no_run_for_trace",
            fix="name the run: paritrace check RUN -o FILE.pftrace",
        )
    notes = tuple(_notes(given.checked, ranks_of(run)))
    write_run(run, sink, cut=given.cut, notes=notes)


def _notes(checked: Checked, ranks: tuple[int, ...]) -> Iterator[Note]:
    """What is not so, on the rank of which it is true, or on all; a call that shows it is named where one is known."""
    for invariant in checked.invariants:
        if invariant.status not in TOLD:
            continue
        records = invariant.evidence.record_ids[:1] or (-1,)
        for rank in ranks if invariant.rank < 0 else (invariant.rank,):
            name = f"{invariant.status.value}: {invariant.id}"
            yield Note(rank, records[0], invariant.step, name, tuple(_arguments(invariant)))


def _arguments(invariant: Invariant) -> Iterator[tuple[str, str]]:
    yield "invariant", invariant.name
    if invariant.evidence.reason:
        yield "reason", invariant.evidence.reason
    for number, fact in enumerate(invariant.evidence.facts[:4]):
        yield f"fact.{number}", fact
