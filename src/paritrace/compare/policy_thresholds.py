"""Thresholds of a policy on recorded tensors of one rank: by their samples and norms, where both runs have them
(CP-13, CP-7)."""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import NamedTuple

import numpy as np

from paritrace.compare.agreement import JudgedSlot, judged_slots
from paritrace.compare.policy import Figure, Tally, Threshold
from paritrace.compare.policy_calls import both, first_unpaired, pairs_like, place_of_call, unpaired_like
from paritrace.compare.ranks import RankComparison
from paritrace.compare.result import Agreement
from paritrace.compare.samples import Sampled, sampled, size_of
from paritrace.compare.slots import SlotPair
from paritrace.evidence.calls import Counts, Detail, Moments, Slot

NEVER = float("inf")


class Met(NamedTuple):
    """One tensor: its figure; NEVER where nothing passes (a NaN, another shape), None where it cannot be told."""

    pair: int
    slot: str
    value: float | None


def threshold(of: RankComparison, rule: Threshold) -> Tally:
    """Judge every tensor that is meant; calls without a counterpart that were summarised cannot be told."""
    met, unsampled = _met(of, rule)
    unpaired = _summarised(of, unpaired_like(of, rule))
    broken = [one for one in met if one.value is not None and not one.value <= rule.most]
    unknown = [one for one in met if one.value is None]
    first = (broken or unknown)[:1]
    num_unpaired = len(unpaired[0]) + len(unpaired[1])
    return Tally(
        checked=len(met) + num_unpaired,
        broken=len(broken),
        unknown=len(unknown) + num_unpaired,
        worst=max((one.value for one in met if one.value is not None), default=None),
        unsampled=unsampled,
        place=place_of_call(of, 0, first[0].pair, slot=first[0].slot) if first else first_unpaired(of, unpaired),
    )


def _met(of: RankComparison, rule: Threshold) -> tuple[list[Met], int]:
    found: list[Met] = []
    unsampled = 0
    for i in pairs_like(of, rule):
        for name, slot in _slots(of, i, rule):
            if slot.pair is None or None in slot.pair.details:
                unsampled += 1
            else:
                found.append(Met(i, name, figure(slot.pair, slot.judged.agreement, rule.figure)))
    return found, unsampled


def _slots(of: RankComparison, i: int, rule: Threshold) -> Iterator[tuple[str, JudgedSlot]]:
    j = of.sides.pairing.partner_a[i]
    for direction in ("i", "o"):
        if rule.direction not in (direction, "*"):
            continue
        for slot in judged_slots(of.sides, i, j, direction=direction):
            name = _name(of, (i, j), direction, slot)
            if fnmatchcase(name, rule.slot):
                yield f"{direction}:{name}", slot


def _name(of: RankComparison, pair: tuple[int, int], direction: str, slot: JudgedSlot) -> str:
    side, place = (0, slot.place_a) if slot.place_a >= 0 else (1, slot.place_b)
    mine = both(of)[side]
    call = mine.calls[pair[side]]
    slots: tuple[Slot, ...] = call.inputs if direction == "i" else call.outputs
    return mine.recorded.names[slots[place].name]


def _summarised(of: RankComparison, unpaired: tuple[list[int], list[int]]) -> tuple[list[int], list[int]]:
    """Those calls of which a tensor was summarised: of the others no threshold speaks."""
    kept: list[list[int]] = []
    for side, items in zip(both(of), unpaired, strict=True):
        with_details = {call for call, _, _ in side.recorded.details}
        kept.append([i for i in items if side.calls[i].id in with_details])
    return kept[0], kept[1]


def figure(pair: SlotPair, agreement: Agreement, wanted: Figure) -> float | None:
    """The figure of two tensors that were both summarised."""
    ours, theirs = pair.details
    assert ours is not None
    assert theirs is not None  # only such pairs are asked for
    if _has_nan(ours) or _has_nan(theirs):
        return NEVER
    if agreement is Agreement.EQUAL:
        return 1.0 if wanted is Figure.NORM_RATIO else 0.0
    if agreement is Agreement.NOT_COMPARABLE:
        return None
    if pair.kinds[0].shape != pair.kinds[1].shape or _infinite(ours.counts) != _infinite(theirs.counts):
        return NEVER
    if wanted is Figure.NORM_RATIO:
        return _norm_ratio(ours.moments, theirs.moments)
    values = sampled((ours.samples, pair.kinds[0].dtype), (theirs.samples, pair.kinds[1].dtype))
    if values is None or np.isnan(values.baseline).any() or np.isnan(values.candidate).any():
        return None if values is None else NEVER
    if wanted is Figure.RELATIVE_ERROR:
        return _relative(values)
    ulp = size_of(values, differing=0).max_ulp
    return None if ulp is None else float(ulp)


def _has_nan(detail: Detail) -> bool:
    return detail.counts is not None and detail.counts.nan > 0


def _infinite(counts: Counts | None) -> tuple[int, int]:
    return (0, 0) if counts is None else (counts.positive_infinity, counts.negative_infinity)


def _norm_ratio(ours: Moments | None, theirs: Moments | None) -> float | None:
    if ours is None or theirs is None or ours.sum_squares is None or theirs.sum_squares is None:
        return None
    small, large = sorted((ours.sum_squares, theirs.sum_squares))
    if large == 0.0:
        return 1.0
    return NEVER if small == 0.0 else float(np.sqrt(large / small))


def _relative(values: Sampled) -> float | None:
    """L2 of the difference over the larger L2 of both sides' samples: the same whichever run is named first."""
    finite = np.isfinite(values.baseline) & np.isfinite(values.candidate)
    left, right = values.baseline[finite], values.candidate[finite]
    if not left.size:
        return None
    scale = max(float(np.abs(left).max()), float(np.abs(right).max()))
    if scale == 0.0:
        return 0.0
    left, right = left / scale, right / scale
    return float(np.linalg.norm(right - left) / max(float(np.linalg.norm(left)), float(np.linalg.norm(right))))
