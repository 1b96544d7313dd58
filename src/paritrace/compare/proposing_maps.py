"""Proposes a map of names between two runs from the sums of their parameters at the first step they share (CP-5)."""

from paritrace.compare.folds_joined import without_operators
from paritrace.compare.folds_orders import parameters_read
from paritrace.compare.folds_sides import FoldSide, common_incarnation, fold_side
from paritrace.compare.load import Recorded, load
from paritrace.compare.proposals import NameMap
from paritrace.compare.proposing import matched
from paritrace.compare.proposing_rules import rules_of
from paritrace.compare.proposing_sums import Names, ambiguous, related
from paritrace.compare.proposing_weights import Weights, weights_of
from paritrace.compare.settings import Settings
from paritrace.errors import EvidenceError
from paritrace.evidence.fingerprints import Scheme
from paritrace.runs.reading import Run


def propose(a: Run, b: Run, *, settings: Settings) -> NameMap:
    """Return the map, of which nothing is applied before a person has reviewed it.

    Raises:
        EvidenceError: Refused: `no_parameters` where the runs share no step whose parameters both recorded.
    """
    sides = _sides(a, b, settings)
    step = None if sides is None else min(_steps(sides[0]) & _steps(sides[1]), default=None)
    if sides is None or step is None:
        raise EvidenceError(
            "the two runs share no step at whose begin both recorded their parameters",
            code="no_parameters",
            fix="capture both from the same step on, for example paritrace run --steps 0:1 …",
        )
    ours, theirs = (weights_of(side, step=step, orders=_orders(side, step)) for side in sides)
    return _name_map(a, b, ours, theirs)


def _name_map(a: Run, b: Run, ours: Weights, theirs: Weights) -> NameMap:
    found = matched(ours, theirs)
    names = Names(found, ours, theirs)
    sums = related(names, found, ours, theirs)
    told = {name for one in sums for name in (*one.baseline, *one.candidate)}
    doubts = ambiguous(names, told)
    told |= {name for one in doubts for name in (*one.baseline, *one.candidate)}
    return NameMap(
        format="paritrace-name-map",
        version="1.0",
        baseline=f"{a.run_id} sha256:{a.digest}",
        candidate=f"{b.run_id} sha256:{b.digest}",
        scheme=Scheme.ELEMENTS_U64.value,
        step=ours.step,
        maps=rules_of(found, ours, theirs),
        related=tuple(sums),
        ambiguous=tuple(doubts),
        only_baseline=tuple(sorted(names.alone[0].keys() - told)),
        only_candidate=tuple(sorted(names.alone[1].keys() - told)),
    )


def _sides(a: Run, b: Run, settings: Settings) -> tuple[FoldSide, FoldSide] | None:
    loaded = (_loaded(a, settings), _loaded(b, settings))
    incarnations = common_incarnation(*loaded) if all(loaded) else None
    if incarnations is None:
        return None
    return (
        fold_side("baseline", loaded[0], incarnation=incarnations[0], settings=settings),
        fold_side("candidate", loaded[1], incarnation=incarnations[1], settings=settings),
    )


def _loaded(run: Run, settings: Settings) -> list[Recorded]:
    """Every rank, with the calls of modules only: they show in which order a parameter was read."""
    return [without_operators(load(run, view, settings=settings)) for view in run.sessions]


def _steps(side: FoldSide) -> set[int]:
    return {
        state.step
        for recorded in side.ranks
        for state in recorded.states
        if state.moment == "begin" and (names := recorded.state_names[state.names]).group == "parameter" and names.names
    }


def _orders(side: FoldSide, step: int) -> dict[str, str]:
    """Of each parameter that one rank read whole: its fingerprint in logical order."""
    return {name: whole.bits for (at, name), whole in parameters_read(side).items() if at == step and whole.bits}
