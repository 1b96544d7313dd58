"""Batches of unlike layouts: the parts of all ranks and micro-batches of a step against the other run's (CP-12)."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from paritrace.compare.folds_layout import Part, locate
from paritrace.compare.folds_result import FoldedState, FoldStatus
from paritrace.compare.folds_sides import FoldSide
from paritrace.evidence.folds import FoldGap
from paritrace.evidence.gaps import CaptureGap, Gap
from paritrace.evidence.mixing import MASK

PIPELINE = "pp"


class BatchKey(NamedTuple):
    step: int
    name: str


class BatchPart(NamedTuple):
    """One tensor of the batch of one rank and micro-batch, `elements-u64`."""

    microbatch: int
    part: Part
    value: int | Gap[CaptureGap]


def batches_of(side: FoldSide) -> dict[BatchKey, list[BatchPart]]:
    """The batches of every step, by their slot's name."""
    found: dict[BatchKey, list[BatchPart]] = {}
    for recorded in side.ranks:
        stage = side.axes[recorded.session.rank].get(PIPELINE)
        if stage is not None and stage.coordinate:
            continue  # what a later stage reads is what an earlier one made
        for state in recorded.states:
            names = recorded.state_names[state.names]
            if (state.moment, names.group) != ("batch", "batch"):
                continue
            for name, kind, value in zip(names.names, names.kinds, state.values, strict=False):
                told = value if isinstance(value, Gap) else int(value, 16)
                part = BatchPart(state.microbatch, side.part(recorded, kind), told)
                found.setdefault(BatchKey(state.step, name), []).append(part)
    return found


def compare_batches(
    baseline: Mapping[BatchKey, Sequence[BatchPart]],
    candidate: Mapping[BatchKey, Sequence[BatchPart]],
    *,
    sides: tuple[FoldSide, FoldSide],
) -> list[FoldedState]:
    """One result for each tensor of the batch of each step."""
    found: list[FoldedState] = []
    for key in sorted(baseline.keys() | candidate.keys()):
        ours, theirs = (
            _told(batches.get(key, ()), side, step=key.step)
            for batches, side in zip((baseline, candidate), sides, strict=True)
        )
        found.append(_compared(key, ours, theirs))
    return found


class _Told(NamedTuple):
    """All parts of one side: `groups` of parts that were read together (one per micro-batch), with their sizes."""

    groups: tuple[tuple[tuple[int, int, int], ...], ...]  # (rank, value, elements)
    dtypes: frozenset[str]
    reason: str = ""

    @property
    def num_elements(self) -> int:
        return sum(elements for group in self.groups for _, _, elements in group)

    @property
    def num_parts(self) -> int:
        return max((len(group) for group in self.groups), default=0)


def _told(parts: Sequence[BatchPart], side: FoldSide, *, step: int) -> _Told:
    if not parts:
        return _Told((), frozenset(), "one_side_only")
    if side.is_cut_off(step):
        return _Told((), frozenset(), FoldGap.RANK_MISSING.value)
    groups: list[tuple[tuple[int, int, int], ...]] = []
    dtypes = frozenset(part.part.kind.dtype for part in parts if part.part.kind is not None)
    if len(dtypes) > 1:  # stages of a pipeline without a mesh: not all of them read the batch
        return _Told((), dtypes, FoldGap.NO_PLACEMENT.value)
    for microbatch in sorted({part.microbatch for part in parts}):
        group = _group([part for part in parts if part.microbatch == microbatch])
        if isinstance(group, str):
            return _Told((), dtypes, group)
        groups.append(group)
    return _Told(tuple(groups), dtypes)


def _group(parts: Sequence[BatchPart]) -> tuple[tuple[int, int, int], ...] | str:
    """The parts of one micro-batch; distributed tensors once for each piece. The reason where there is no telling."""
    if any(part.part.kind is None or isinstance(part.value, Gap) for part in parts):
        return FoldGap.PART_UNKNOWN.value
    wanted = list(range(len(parts)))
    if any(part.part.placement is not None for part in parts):
        layout = locate([part.part for part in parts], dims=None, num_absent=0)
        if isinstance(layout, Gap):
            return layout.gap.value
        if any(len({parts[place].value for place in piece.members}) > 1 for piece in layout.pieces):
            return FoldGap.UNLIKE_REPLICAS.value
        wanted = [piece.members[0] for piece in layout.pieces]
    told: list[tuple[int, int, int]] = []
    for place in wanted:
        part = parts[place]
        if part.part.kind is not None and isinstance(part.value, int):
            told.append((part.part.rank, part.value, part.part.kind.num_elements))
    return tuple(told)


def _compared(key: BatchKey, ours: _Told, theirs: _Told) -> FoldedState:
    parts = (ours.num_parts, theirs.num_parts)
    where = (key.step, "batch", "batch", key.name)
    reasons = [f"{name}: {told.reason}" for name, told in (("baseline", ours), ("candidate", theirs)) if told.reason]
    if reasons:
        return FoldedState(*where, status=FoldStatus.NOT_CHECKABLE, parts=parts, reason="; ".join(reasons))
    if ours.dtypes != theirs.dtypes:
        fact = f"dtype {', '.join(sorted(ours.dtypes))} against {', '.join(sorted(theirs.dtypes))}"
        return FoldedState(*where, status=FoldStatus.DIFFERS, parts=parts, facts=(fact,))
    copies = _copies(ours.num_elements, theirs.num_elements)
    sizes = f"{ours.num_elements:,} elements against {theirs.num_elements:,}"
    if copies is None:
        return FoldedState(*where, status=FoldStatus.DIFFERS, parts=parts, facts=(sizes,))
    sums = (_once(ours, copies[0]), _once(theirs, copies[1]))
    facts = tuple(_copied(copies))
    if None in sums:
        fact = f"{sizes}, and the ranks do not hold equal parts"
        return FoldedState(*where, status=FoldStatus.DIFFERS, parts=parts, facts=(fact,))
    if sums[0] == sums[1]:
        return FoldedState(*where, status=FoldStatus.AGREES, parts=parts, facts=facts)
    same = tuple(_repeated("baseline", ours)) + tuple(_repeated("candidate", theirs))
    return FoldedState(*where, status=FoldStatus.DIFFERS, parts=parts, facts=facts + same)


def _copies(ours: int, theirs: int) -> tuple[int, int] | None:
    """How often each side holds the batch, by the number of elements; None where that is no whole number."""
    small, large = sorted((ours, theirs))
    if small == large:
        return (1, 1)
    if not small or large % small:
        return None
    return (ours // small, theirs // small)


def _once(told: _Told, copies: int) -> int | None:
    """The sum over all parts, each of which ranks hold `copies` times; None where they do not."""
    total = 0
    for group in told.groups:
        for (value, _), number in Counter((value, elements) for _, value, elements in group).items():
            if number % copies:
                return None
            total += value * (number // copies)
    return total & MASK


def _copied(copies: tuple[int, int]) -> Iterator[str]:
    for side, number in zip(("baseline", "candidate"), copies, strict=True):
        if number > 1:
            yield f"{side}: every part is there {number} times, alike on its ranks"


def _repeated(side: str, told: _Told) -> Iterator[str]:
    """Ranks that read the same in one micro-batch."""
    for place, group in enumerate(told.groups):
        for value, number in Counter(value for _, value, _ in group).items():
            if number > 1 and len(group) > 1:
                ranks = sorted(rank for rank, other, _ in group if other == value)
                yield f"{side}: ranks {', '.join(map(str, ranks))} have the same batch (micro-batch {place})"
