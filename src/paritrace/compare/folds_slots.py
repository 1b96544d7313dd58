"""Module-level tensors of unlike layouts: paired by module and call, compared by moments and samples (CP-12)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from paritrace.compare.folds_dims import SLOT
from paritrace.compare.folds_errors import Errors, errors
from paritrace.compare.folds_layout import locate
from paritrace.compare.folds_result import FoldedSlot
from paritrace.compare.folds_sides import FoldSide
from paritrace.compare.folds_tensors import SlotPart, WholeTensor, alone, folded
from paritrace.compare.load import Recorded
from paritrace.evidence.calls import Call, Flag, Level
from paritrace.evidence.gaps import Gap

OBSERVED = "paritrace.observe("
NOT_READ = Flag.RECOMPUTE | Flag.RAISED
Batch = frozenset[tuple[str, str]]
BatchOf = Mapping[tuple[int, int, int], Batch]
"""Rank, step, micro-batch -> names and digests of the batch."""


class SlotKey(NamedTuple):
    """A module's tensor: `again` counts further calls that nothing else tells apart."""

    step: int
    microbatch: int
    phase: str
    module: str
    nth: int
    slot: str
    again: int


class Found(NamedTuple):
    """The same tensor on the ranks of one side, and the batch each rank read."""

    parts: list[SlotPart]
    batches: list[Batch | None]


def slots_of(side: FoldSide) -> dict[SlotKey, Found]:
    """Outputs of module calls and their gradients, with summaries, on every rank."""
    batches = _batches(side)
    found: dict[SlotKey, Found] = {}
    for recorded in side.ranks:
        seen: Counter[tuple[object, ...]] = Counter()
        for call in recorded.calls:
            if recorded.functions[call.function].level is Level.MODULE and not call.flags & NOT_READ:
                _take(found, call, recorded, side=side, seen=seen, batches=batches)
    return found


def _take(
    found: dict[SlotKey, Found],
    call: Call,
    recorded: Recorded,
    *,
    side: FoldSide,
    seen: Counter[tuple[object, ...]],
    batches: BatchOf,
) -> None:
    context = recorded.contexts[call.context]
    scope = recorded.scopes.get(call.scope)
    function = recorded.functions[call.function].name
    module = side.spelled("" if scope is None else scope.module, recorded)
    if side.settings.ignores(module, function):
        return
    name = function if function.startswith(OBSERVED) else module
    for place, slot in enumerate(call.outputs):
        detail = recorded.details.get((call.id, "o", place))
        if detail is None:
            continue
        where = (context.step, context.microbatch, context.phase.value, name, 0 if scope is None else scope.nth)
        key = (*where, recorded.names[slot.name])
        made = found.setdefault(SlotKey(*key, seen[key]), Found([], []))
        seen[key] += 1
        made.parts.append(SlotPart(side.part(recorded, slot.kind), detail))
        made.batches.append(batches.get((recorded.session.rank, context.step, context.microbatch)))


def _batches(side: FoldSide) -> BatchOf:
    found: dict[tuple[int, int, int], Batch] = {}
    for recorded in side.ranks:
        for state in recorded.states:
            names = recorded.state_names[state.names]
            if state.moment == "batch" and all(isinstance(value, str) for value in state.values):
                told = frozenset(
                    (f"{names.group}:{n}", str(v)) for n, v in zip(names.names, state.values, strict=False)
                )
                place = (recorded.session.rank, state.step, state.microbatch)
                found[place] = found.get(place, frozenset()) | told
    return found


class Wholes(NamedTuple):
    """One folded whole, or one from each rank that has all of it; each with its batch (None: not recorded).

    `declared`: the user laid the parts together, whatever the batches were.
    """

    tensors: tuple[tuple[WholeTensor, Batch | None], ...]
    declared: bool = False
    reason: str = ""


def wholes(found: Found, *, key: SlotKey, side: FoldSide) -> Wholes:
    """What one side holds of a tensor."""
    placed = any(part.part.placement is not None for part in found.parts)
    dims = None if placed else side.dims_of(f"{key.module}{SLOT}{key.slot}")
    if not placed and (dims is None or side.world_size == 1):
        each = zip(found.parts, found.batches, strict=True)
        return Wholes(tuple((alone(part), batch) for part, batch in each))
    absent = max(0, side.world_size - len({part.part.rank for part in found.parts}))
    layout = locate([part.part for part in found.parts], dims=dims, num_absent=absent, pending=True)
    if isinstance(layout, Gap):
        return Wholes((), reason=f"{side.name}: {layout.gap.value}")
    if not layout.pieces:
        return Wholes((), reason="empty")
    return Wholes(((folded(layout, found.parts), found.batches[0]),), declared=not placed)


def compare_slots(
    baseline: Mapping[SlotKey, Found], candidate: Mapping[SlotKey, Found], *, sides: tuple[FoldSide, FoldSide]
) -> tuple[list[FoldedSlot], dict[str, int]]:
    """The errors of every tensor that could be compared, and how many could not, by reason."""
    found: list[FoldedSlot] = []
    left_out: Counter[str] = Counter()
    for key in sorted(baseline.keys() | candidate.keys()):
        if key not in baseline or key not in candidate:
            left_out["one_side_only"] += 1
            continue
        ours = wholes(baseline[key], key=key, side=sides[0])
        theirs = wholes(candidate[key], key=key, side=sides[1])
        compared, reason = _compared(key, ours, theirs)
        if compared is None:
            left_out[reason] += 1
        else:
            found.append(compared)
    return found, dict(sorted(left_out.items()))


def _compared(key: SlotKey, ours: Wholes, theirs: Wholes) -> tuple[FoldedSlot | None, str]:
    """The largest errors among the pairs of ranks that may be compared; or why there is none."""
    if ours.reason or theirs.reason:
        return None, "; ".join(reason for reason in (ours.reason, theirs.reason) if reason)
    declared = ours.declared or theirs.declared
    pairs: list[tuple[WholeTensor, WholeTensor]] = []
    reasons: list[str] = []
    for left, batch in ours.tensors:
        for right, other in theirs.tensors:
            reason = _unlike(left, right, batches=None if declared else (batch, other))
            reasons.append(reason)
            if not reason:
                pairs.append((left, right))
    if not pairs:
        return None, min(reasons, default="empty")
    told = [(errors(left, right), left.ranks, right.ranks) for left, right in pairs]
    return _worst(key, told), ""


def _unlike(ours: WholeTensor, theirs: WholeTensor, *, batches: tuple[Batch | None, Batch | None] | None) -> str:
    """Why two wholes are not compared: another shape, or what they were made from is not known to be the same."""
    if batches is not None and batches[0] != batches[1]:
        return "other_batch"
    if ours.shape != theirs.shape:
        return "shape"
    if batches is not None and batches[0] is None:
        return "batch_unknown"
    return "" if ours.moments is not None and theirs.moments is not None else "no_statistics"


def _worst(key: SlotKey, told: Sequence[tuple[Errors, tuple[int, ...], tuple[int, ...]]]) -> FoldedSlot:
    found, ours, theirs = max(told, key=lambda one: one[0].largest)
    return FoldedSlot(
        step=key.step,
        microbatch=key.microbatch,
        phase=key.phase,
        module=key.module,
        nth=key.nth,
        slot=key.slot,
        ranks=(ours, theirs),
        norm_error=found.norm,
        mean_error=found.mean,
        range_error=found.bounds,
        sample_error=found.samples,
        num_samples=found.num_samples,
        ratio=found.ratio,
        facts=tuple(dict.fromkeys(fact for one, _, _ in told for fact in one.facts)),
    )
