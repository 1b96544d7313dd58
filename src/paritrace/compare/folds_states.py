"""Parameters, buffers, optimizer state and gradients of unlike layouts, whole against whole (CA-8, CP-12)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from paritrace.compare.folds_facts import UNTOLD, Held, facts_of
from paritrace.compare.folds_layout import Layout, Part, locate
from paritrace.compare.folds_orders import UNSEEN, Order, Read, order_of
from paritrace.compare.folds_result import FoldedState, FoldStatus
from paritrace.compare.folds_sides import FoldSide
from paritrace.compare.state_groups import WEIGHTS
from paritrace.evidence.folds import FoldGap, fold_elements
from paritrace.evidence.gaps import CaptureGap, Gap

FOLDED = frozenset({("begin", "parameter"), ("begin", "buffer"), ("begin", "optimizer_state"), ("grads", "gradient")})
LOADED = WEIGHTS  # what is read from a checkpoint: only there facts of parts help
ONE_SIDE = "one_side_only"


class StateKey(NamedTuple):
    step: int
    moment: str
    group: str
    name: str


class StatePart(NamedTuple):
    """One rank's figure of a state, `elements-u64`."""

    part: Part
    value: int | Gap[CaptureGap]


class WholeState(NamedTuple):
    """A state folded: `value` of the whole or why there is none; `held` are its pieces with a value each."""

    dtype: str
    shape: tuple[int, ...] | None
    value: int | Gap[FoldGap]
    held: tuple[Held, ...] = ()


def states_of(side: FoldSide) -> dict[StateKey, list[StatePart]]:
    """Every figure of the folded groups, by what it is of, in the order of ranks."""
    found: dict[StateKey, dict[int, StatePart]] = {}
    for recorded in side.ranks:
        for state in recorded.states:
            names = recorded.state_names[state.names]
            if (state.moment, names.group) not in FOLDED:
                continue
            for name, kind, value in zip(names.names, names.kinds, state.values, strict=False):
                spelled = side.spelled(name, recorded)
                if not side.settings.ignores(spelled):
                    told = value if isinstance(value, Gap) else int(value, 16)
                    key = StateKey(state.step, state.moment, names.group, spelled)
                    found.setdefault(key, {})[recorded.session.rank] = StatePart(side.part(recorded, kind), told)
    return {key: list(parts.values()) for key, parts in found.items()}


def folded(parts: Sequence[StatePart], *, key: StateKey, side: FoldSide) -> WholeState:
    """The whole that the ranks of one side hold together."""
    scalar = all(part.part.kind is not None and not part.part.kind.shape for part in parts)
    dims = None if scalar else side.dims_of(key.name.partition(":")[0])  # an optimizer's state lies as its parameter
    layout = locate([part.part for part in parts], dims=dims, num_absent=side.num_absent(key.step, key.moment))
    kinds = [part.part.kind for part in parts if part.part.kind is not None]
    dtype = kinds[0].dtype if kinds else ""
    if isinstance(layout, Gap):
        return WholeState(dtype, None, layout, _loose(parts))
    held = tuple(_pieces(layout, parts))
    if any(piece.unlike for piece in held):
        gap = FoldGap.NO_PLACEMENT if layout.assumed else FoldGap.UNLIKE_REPLICAS
        return WholeState(dtype, layout.shape, Gap(gap), _loose(parts) if layout.assumed else held)
    value = fold_elements([piece.value for piece in held]) if held else 0
    return WholeState(dtype, layout.shape, value, held)


def _pieces(layout: Layout, parts: Sequence[StatePart]) -> Iterator[Held]:
    """Each piece with its value; of replicas any that was recorded, if those agree."""
    for piece in layout.pieces:
        values = [parts[place].value for place in piece.members]
        known = {value for value in values if isinstance(value, int)}
        ranks = tuple(parts[place].part.rank for place in piece.members)
        yield Held(piece.box, ranks, min(known) if len(known) == 1 else None, unlike=len(known) > 1)


def _loose(parts: Sequence[StatePart]) -> tuple[Held, ...]:
    """What each rank holds, where it is not known how that makes up a whole."""
    return tuple(Held(None, (part.part.rank,), part.value if isinstance(part.value, int) else None) for part in parts)


def compare_states(
    baseline: Mapping[StateKey, Sequence[StatePart]],
    candidate: Mapping[StateKey, Sequence[StatePart]],
    *,
    sides: tuple[FoldSide, FoldSide],
    read: tuple[Read, Read],
) -> list[FoldedState]:
    """Whole against whole, in order of step, moment, group and name; `read`: parameters as modules read them.

    A moment of which one side recorded nothing at all is left out: there is nothing to compare it with.
    """
    told: set[tuple[str, str]] = set()  # facts are given once for each state, where it first differs
    found: list[FoldedState] = []
    recorded = {key[:3] for key in baseline} & {key[:3] for key in candidate}
    for key in sorted(key for key in baseline.keys() | candidate.keys() if key[:3] in recorded):
        if key not in baseline or key not in candidate:
            found.append(_one_sided(key, baseline.get(key), candidate.get(key)))
            continue
        ours = folded(baseline[key], key=key, side=sides[0])
        theirs = folded(candidate[key], key=key, side=sides[1])
        order = UNSEEN
        if key.group == "parameter":
            orders = (whole.get((key.step, key.name)) for whole in read)
            order = order_of(*orders, held={"baseline": ours.held, "candidate": theirs.held})
        wanted = key.group in LOADED and (key.group, key.name) not in told
        compared = _compared(key, (ours, theirs), order, with_facts=wanted)
        if compared.status is not FoldStatus.AGREES:
            told.add((key.group, key.name))
        found.append(compared)
    return found


def _one_sided(key: StateKey, ours: Sequence[StatePart] | None, theirs: Sequence[StatePart] | None) -> FoldedState:
    side = "candidate" if ours is None else "baseline"
    return FoldedState(
        *key,
        status=FoldStatus.NOT_CHECKABLE,
        parts=(len(ours or ()), len(theirs or ())),
        reason=f"{side}: {ONE_SIDE}",
    )


def _compared(key: StateKey, wholes: tuple[WholeState, WholeState], order: Order, *, with_facts: bool) -> FoldedState:
    """The elements decide; where they agree, another order that was seen still is a difference."""
    ours, theirs = wholes
    parts = (len(ours.held), len(theirs.held))
    reasons = [
        f"{name}: {_told(whole.value)}"
        for name, whole in (("baseline", ours), ("candidate", theirs))
        if isinstance(whole.value, Gap)
    ]
    kinds = tuple(_unlike_kinds(ours, theirs))
    facts = kinds
    if with_facts and not kinds:
        parts_say = facts_of(ours.held, theirs.held)
        facts = (*(fact.removesuffix(UNTOLD) if order.other else fact for fact in parts_say), *order.facts)
    if reasons:
        return FoldedState(*key, status=FoldStatus.NOT_CHECKABLE, parts=parts, reason="; ".join(reasons), facts=facts)
    if kinds or ours.value != theirs.value:
        return FoldedState(*key, status=FoldStatus.DIFFERS, parts=parts, facts=facts)
    if order.other:
        facts = ("the elements agree and their order does not", *order.facts)
        return FoldedState(*key, status=FoldStatus.DIFFERS, parts=parts, facts=facts)
    return FoldedState(*key, status=FoldStatus.AGREES, parts=parts)


def _told(gap: int | Gap[FoldGap]) -> str:
    assert isinstance(gap, Gap)
    return gap.gap.value if gap.detail is None else f"{gap.gap.value} ({gap.detail})"


def _unlike_kinds(ours: WholeState, theirs: WholeState) -> Iterator[str]:
    """Dtype and shape of the wholes come before their values; nothing is joined, unpadded or transposed."""
    if ours.dtype and theirs.dtype and ours.dtype != theirs.dtype:
        yield f"dtype {ours.dtype} against {theirs.dtype}"
    if ours.shape is not None and theirs.shape is not None and ours.shape != theirs.shape:
        shapes = f"{list(ours.shape)} against {list(theirs.shape)}"
        yield f"the whole is {shapes}: nothing was joined, unpadded or transposed"
