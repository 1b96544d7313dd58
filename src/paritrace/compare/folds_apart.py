"""What bits may still say of two ranks whose runs are laid out otherwise: agreement is a fact, a difference is none."""

from enum import StrEnum

from paritrace.compare.digests import Digests
from paritrace.compare.load import Recorded
from paritrace.compare.result import Agreement
from paritrace.compare.settings import Settings
from paritrace.compare.slots import Incomparable, Judged
from paritrace.evidence.calls import Kind, Level
from paritrace.evidence.distributed import Placement

STATES = frozenset({"parameter", "buffer", "optimizer_state", "gradient", "grad_norm"})
FIGURES = STATES | {"batch", "loss"}


class Apart(StrEnum):
    """How far the rank of one run is from being the counterpart of the rank of the other."""

    NO = "no"
    STATES = "states"  # states are distributed otherwise (FSDP2 against DDP); the calls correspond
    ALL = "all"  # another number of ranks, or modules that work on other parts


def apart(baseline: Recorded, candidate: Recorded, *, settings: Settings) -> Apart:
    """Say whether two ranks hold the same parts of everything, by what was recorded.

    Where the placements of states differ, the calls correspond if the ranks read the same batch first and no module
    gives another shape.
    """
    if baseline.session.row.world_size != candidate.session.row.world_size:
        return Apart.ALL
    if not baseline.distributed.placements and not candidate.distributed.placements:
        return Apart.NO
    read = (
        settings.seen_from("baseline", baseline.session.rank),
        settings.seen_from("candidate", candidate.session.rank),
    )
    if _placed_alike(_in_states(baseline, read[0]), _in_states(candidate, read[1])):
        return Apart.NO
    same = _first_batch(baseline) == _first_batch(candidate)
    ours, theirs = _shapes(baseline, read[0]), _shapes(candidate, read[1])
    alike = all(ours[key] == theirs[key] for key in ours.keys() & theirs.keys())
    return Apart.STATES if same and alike else Apart.ALL


_Placed = tuple[tuple[str, ...], tuple[int, ...], tuple[int, ...]]


def _first_batch(recorded: Recorded) -> set[tuple[str, str]]:
    """Names and digests of the batch that was read first."""
    batches = [state for state in recorded.states if state.moment == "batch"]
    first = min((state.step, state.microbatch) for state in batches) if batches else None
    return {
        (name, str(value))
        for state in batches
        if (state.step, state.microbatch) == first and recorded.state_names[state.names].group == "batch"
        for name, value in zip(recorded.state_names[state.names].names, state.values, strict=False)
    }


def _shapes(recorded: Recorded, settings: Settings) -> dict[tuple[str, str], tuple[int, ...]]:
    """The shape of each output of each module, as it was seen first."""
    modules = {number for number, function in recorded.functions.items() if function.level is Level.MODULE}
    found: dict[tuple[str, str], tuple[int, ...]] = {}
    for call in recorded.calls:
        if call.function in modules and call.scope in recorded.scopes:
            for slot in call.outputs:
                key = (settings.spelled(recorded.scopes[call.scope].module), recorded.names[slot.name])
                found.setdefault(key, recorded.kinds[slot.kind].shape)
    return found


_States = dict[tuple[str, str], _Placed | None]
"""Group and name -> how the state is placed, None where it is plain."""


def _in_states(recorded: Recorded, settings: Settings) -> _States:
    placements = recorded.distributed.placements
    return {
        (names.group, settings.spelled(name)): _placed(placements[kind]) if kind in placements else None
        for names in recorded.state_names.values()
        for name, kind in zip(names.names, names.kinds, strict=False)
        if kind >= 0
    }


def _placed_alike(ours: _States, theirs: _States) -> bool:
    """By the states that both have: a run that was cut off early has fewer. Without any, both or none are placed."""
    common = ours.keys() & theirs.keys()
    if not common:
        return any(ours.values()) == any(theirs.values())
    return all(ours[key] == theirs[key] for key in common)


def _placed(placement: Placement) -> _Placed:
    return placement.placements, placement.shape, placement.offset


def set_apart(found: Digests, how: Apart) -> None:
    """Take back, in place, the differences of figures that the two ranks do not share: they are unknown here."""
    groups = {Apart.NO: frozenset[str](), Apart.STATES: STATES, Apart.ALL: FIGURES}[how]
    for key in found.different.of_groups(groups):
        found.different.remove(key)
        found.unknown.add(key)


def limited(judged: Judged, kinds: tuple[Kind, Kind], *, apart: Apart) -> Judged:
    """What is left of a judgement by bits: between parts of unlike layouts a difference is not comparable."""
    if apart is Apart.NO or judged.agreement is not Agreement.DIFFERENT:
        return judged
    same_part = kinds[0].shape == kinds[1].shape and kinds[0].tensor_class == kinds[1].tensor_class
    if apart is Apart.STATES and same_part:
        return judged
    return Judged(Agreement.NOT_COMPARABLE, Incomparable.PARALLELISM)
