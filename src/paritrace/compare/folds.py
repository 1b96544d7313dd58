"""Runs of unlike layouts, related by fold: whether they are unlike, and all that can be said then (CP-12)."""

from collections.abc import Mapping, Sequence
from itertools import groupby

from paritrace.compare.folds_batches import batches_of, compare_batches
from paritrace.compare.folds_orders import parameters_read
from paritrace.compare.folds_result import FoldCount, FoldedState, Folds, FoldStatus
from paritrace.compare.folds_sides import FoldSide, common_incarnation, fold_side
from paritrace.compare.folds_slots import compare_slots, slots_of
from paritrace.compare.folds_states import compare_states, states_of
from paritrace.compare.load import Recorded
from paritrace.compare.result import Mark
from paritrace.compare.settings import Settings
from paritrace.evidence.fingerprints import Scheme

STATES_KEPT = 200
SLOTS_KEPT = 50
UNLIKE_WORLDS = "world sizes"
_Parameter = tuple[int, str]
"""Rank and name."""


def unlike(baseline: Sequence[Recorded], candidate: Sequence[Recorded], *, settings: Settings) -> tuple[str, ...]:
    """What is unlike between the layouts of two runs, in words; nothing where their ranks correspond one to one."""
    worlds = tuple(max((one.session.row.world_size for one in side), default=0) for side in (baseline, candidate))
    if worlds[0] != worlds[1]:
        return (f"{UNLIKE_WORLDS} {worlds[0]} and {worlds[1]}",)
    ours, theirs = _placed(baseline, "baseline", settings), _placed(candidate, "candidate", settings)
    ranks = {one.session.rank for one in baseline} & {one.session.rank for one in candidate}
    apart = {name for (rank, name), how in ours.items() if rank in ranks and theirs.get((rank, name), ()) != how}
    apart |= {name for (rank, name), how in theirs.items() if rank in ranks and ours.get((rank, name), ()) != how}
    if not apart:
        return ()
    return (f"placements of {len(apart)} {'parameter' if len(apart) == 1 else 'parameters'}, such as {min(apart)}",)


def _placed(side: Sequence[Recorded], name_of_side: str, settings: Settings) -> Mapping[_Parameter, tuple[object, ...]]:
    """How each rank holds each parameter that is distributed; plain ones are left out."""
    found: dict[_Parameter, tuple[object, ...]] = {}
    for recorded in side:
        reading = settings.seen_from(name_of_side, recorded.session.rank)
        for names in recorded.state_names.values():
            if names.group != "parameter":
                continue
            for name, kind in zip(names.names, names.kinds, strict=False):
                placement = recorded.distributed.placements.get(kind)
                if placement is not None:
                    key = (recorded.session.rank, reading.spelled(name))
                    found[key] = (placement.placements, placement.shape, placement.offset)
    return found


def fold(
    baseline: Sequence[Recorded], candidate: Sequence[Recorded], *, settings: Settings, why: Sequence[str]
) -> Folds | None:
    """Relate two runs by fold; `why` says what is unlike. None where they share no incarnation."""
    incarnations = common_incarnation(baseline, candidate)
    if incarnations is None:
        return None
    sides = (
        fold_side("baseline", baseline, incarnation=incarnations[0], settings=settings),
        fold_side("candidate", candidate, incarnation=incarnations[1], settings=settings),
    )
    states = _states(sides)
    slots, left_out = compare_slots(slots_of(sides[0]), slots_of(sides[1]), sides=sides)
    return Folds(
        why=tuple(why),
        scheme=Scheme.ELEMENTS_U64.value,
        incarnations=incarnations,
        ranks=(sides[0].numbers, sides[1].numbers),
        world_sizes=(sides[0].world_size, sides[1].world_size),
        counts=counts_of(states),
        states=tuple(state for state in states if state.status is not FoldStatus.AGREES or state.facts)[:STATES_KEPT],
        num_slots=len(slots),
        slots=tuple(sorted(slots, key=lambda slot: (slot.step, -slot.largest))[:SLOTS_KEPT]),
        slots_not_compared=left_out,
        declared=settings.declared,
    )


def _states(sides: tuple[FoldSide, FoldSide]) -> list[FoldedState]:
    read = (parameters_read(sides[0]), parameters_read(sides[1]))
    found = compare_states(states_of(sides[0]), states_of(sides[1]), sides=sides, read=read)
    found += compare_batches(batches_of(sides[0]), batches_of(sides[1]), sides=sides)
    return sorted(found, key=lambda state: (state.step, _MOMENTS.index(state.moment), state.group, state.name))


_MOMENTS = ("begin", "batch", "grads")


def counts_of(states: Sequence[FoldedState]) -> tuple[FoldCount, ...]:
    """How many agree, by step, moment and group."""
    found: list[FoldCount] = []
    for (step, moment, group), members in groupby(states, key=lambda state: (state.step, state.moment, state.group)):
        told = list(members)
        statuses = [state.status for state in told]
        parts = (max(state.parts[0] for state in told), max(state.parts[1] for state in told))
        agree, differ, open_ = (statuses.count(status) for status in FoldStatus)
        found.append(FoldCount(step, moment, group, agree, differ, open_, parts))
    return tuple(found)


def first_step(folds: Folds) -> int | None:
    """The step that made the first difference: weights that differ at a begin were made in the step before it."""
    seen = {count.step for count in folds.counts}
    made = [
        count.step - 1 if count.moment == "begin" and count.step - 1 in seen else count.step
        for count in folds.counts
        if count.differ
    ]
    return min(made, default=None)


def rungs(folds: Folds, *, step: int, by_calls: bool) -> dict[str, Mark]:
    """The marks of the ladder that folds decide at one step.

    A gradient is reduced in another order, so bits that differ there, and what an optimizer makes of it, are
    undetermined. `by_calls`: the calls of single ranks correspond, so that their bits decide the phases; otherwise they
    were compared by moments and samples, without a verdict.
    """
    reduced = _mark(folds, step, ("gradient",))
    made = {
        "optimizer": _mark(folds, step + 1, ("optimizer_state",)),
        "weights+1": _mark(folds, step + 1, ("parameter", "buffer")),
    }
    if reduced is not Mark.AGREES:
        made = {rung: mark if mark is Mark.AGREES else Mark.UNDETERMINED for rung, mark in made.items()}
    marks = {
        "data": _mark(folds, step, ("batch",)),
        "weights": _mark(folds, step, ("parameter", "buffer")),
        "reduced grads": Mark.UNDETERMINED if reduced is Mark.BEYOND else reduced,
        **made,
    }
    if not by_calls:
        marks |= dict.fromkeys(("forward", "loss", "backward", "grad norm"), Mark.UNDETERMINED)
        marks["optimizer"] = marks["optimizer"] or Mark.UNDETERMINED
    return {rung: mark for rung, mark in marks.items() if mark is not None}


def _mark(folds: Folds, step: int, groups: tuple[str, ...]) -> Mark | None:
    counts = [count for count in folds.counts if count.step == step and count.group in groups]
    if not counts:
        return None
    if any(count.differ for count in counts):
        return Mark.BEYOND
    return Mark.UNDETERMINED if any(count.not_checkable for count in counts) else Mark.AGREES
