"""What may be said of the job as a whole: a pure view of what its ranks have reported (SE-11, SE-31)."""

from collections.abc import Sequence

from msgspec import Struct

from paritrace.session.states import RankState

_KNOWN = frozenset(state.value for state in RankState)
_OF_RANK_0_ALONE = frozenset({RankState.SAVING.value, RankState.EXPORTING_PREVIEW.value})


class Report(Struct, frozen=True):
    """The last that one rank said. `state` None, or a text that we do not know: silence."""

    state: str | None
    epoch: int


class View(Struct, frozen=True, forbid_unknown_fields=True):
    """The job. `state`, `epoch`: those that all ranks agree on, or did last; `agreed` says which of both."""

    state: RankState
    epoch: int
    agreed: bool
    laggard: int | None = None
    operation: str | None = None  # what rank 0 does alone while the others idle


def view_of(reports: Sequence[Report], *, state: RankState, epoch: int) -> View:
    """Return the view of the job. `state` and `epoch` are the last that all ranks agreed on; `reports` by rank."""
    states = [report.state if report.state in _KNOWN else None for report in reports]
    first, *rest = states
    if first is not None and all(one == first for one in rest):
        if len({report.epoch for report in reports}) == 1:
            return View(RankState(first), reports[0].epoch, agreed=True)
    elif first in _OF_RANK_0_ALONE and rest and set(rest) == {RankState.IDLE.value}:
        return View(state, epoch, agreed=False, operation=f"rank 0: {first}")
    return View(state, epoch, agreed=False, laggard=laggard_of(reports))


def laggard_of(reports: Sequence[Report]) -> int | None:
    """Return who is behind.

    The lowest rank whose state differs from rank 0's; while rank 0 is silent the lowest that reported; with equal
    states the first whose epoch is behind; nobody while nobody reported (SE-31).
    """
    states = [report.state if report.state in _KNOWN else None for report in reports]
    if states[0] is None:
        return next((rank for rank, state in enumerate(states) if state is not None), None)
    other = next((rank for rank, state in enumerate(states) if state != states[0]), None)
    if other is not None:
        return other
    newest = max(report.epoch for report in reports)
    return next((rank for rank, report in enumerate(reports) if report.epoch < newest), None)
