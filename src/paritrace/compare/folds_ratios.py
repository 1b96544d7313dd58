"""Whole-number ratios between losses and gradient norms: stated with what they could be made of, attributed to nothing.

A loss that is normalised per micro-batch on one side and globally on the other shows so (A-15): 8 = 4 ranks x 2
micro-batches, and mending one factor leaves the other. Figures of one rank and micro-batch are compared with those of
the same rank and micro-batch; that a mean over ranks equals a single loss is never assumed.
"""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import NamedTuple

from paritrace.compare.folds_result import RatioFact
from paritrace.compare.load import Recorded
from paritrace.evidence.gaps import CaptureGap, Gap

TOLERANCE = 2.0**-10  # relative: a loss in float32 after other kernels; two unrelated figures fall in by 1 in 500
LARGEST = 65_536
MIN_VALUES = 2  # one figure alone is no constant


class FigureKey(NamedTuple):
    """Which value of a figure: of a step, rank, micro-batch, and which backward call of it."""

    step: int
    rank: int
    microbatch: int
    again: int


Figures = Mapping[FigureKey, float]


class RankFigures(NamedTuple):
    """What one rank says of its losses and gradient norms, and of the factors that a ratio could be made of."""

    losses: Figures
    norms: Figures
    world_size: int
    microbatches: int


class Factors(NamedTuple):
    """What a ratio could be made of, by side: ranks, and micro-batches of a step."""

    ranks: tuple[int, int]
    microbatches: tuple[int, int]


def figures_of(recorded: Recorded) -> RankFigures:
    """The figures of one rank."""
    return RankFigures(
        _losses(recorded),
        _norms(recorded),
        recorded.session.row.world_size,
        1 + max((loss.microbatch for loss in recorded.losses), default=0),
    )


def ratio_facts(ranks: Sequence[tuple[RankFigures, RankFigures]]) -> tuple[RatioFact, ...]:
    """The ratios of losses and of gradient norms, where there is one; `ranks`: pairs of baseline and candidate."""
    if not ranks:
        return ()
    worlds, microbatches = (
        [(getattr(ours, name), getattr(theirs, name)) for ours, theirs in ranks]
        for name in ("world_size", "microbatches")
    )
    factors = Factors(max(worlds), max(microbatches))
    found = [
        _fact("loss", _joined(ranks, 0, "losses"), _joined(ranks, 1, "losses"), factors=factors),
        _fact("grad_norm", _joined(ranks, 0, "norms"), _joined(ranks, 1, "norms"), factors=factors),
    ]
    return tuple(fact for fact in found if fact is not None)


def _joined(ranks: Sequence[tuple[RankFigures, RankFigures]], side: int, name: str) -> Figures:
    return {key: value for pair in ranks for key, value in getattr(pair[side], name).items()}


def _losses(recorded: Recorded) -> Figures:
    found: dict[FigureKey, float] = {}
    seen: dict[tuple[int, int], int] = {}
    for loss in recorded.losses:
        again = seen.get((loss.step, loss.microbatch), 0)
        seen[loss.step, loss.microbatch] = again + 1
        value = _number(loss.value)
        if value is not None:
            found[FigureKey(loss.step, recorded.session.rank, loss.microbatch, again)] = value
    return found


def _norms(recorded: Recorded) -> Figures:
    told = {FigureKey(step.step, recorded.session.rank, 0, 0): _number(step.grad_norm) for step in recorded.steps}
    return {key: value for key, value in told.items() if value is not None}


def _number(text: str | Gap[CaptureGap]) -> float | None:
    """A recorded figure; None for gaps, zero and what is not finite: they have no ratio."""
    try:
        value = float.fromhex(text) if isinstance(text, str) else 0.0
    except (ValueError, OverflowError):
        return None
    return value if isfinite(value) and value != 0 else None


def _fact(figure: str, ours: Figures, theirs: Figures, *, factors: Factors) -> RatioFact | None:
    common = sorted(ours.keys() & theirs.keys())
    if not common:
        return None
    first = common[0].step
    ratios = {key: theirs[key] / ours[key] for key in common}
    lead = [ratio for key, ratio in ratios.items() if key.step == first]
    whole = _whole_number(lead[0])
    if whole is None or any(not _shows(ratio, whole) for ratio in lead):
        return None
    number, larger = whole
    values = sum(_shows(ratio, whole) for ratio in ratios.values())
    if values < MIN_VALUES:
        return None
    return RatioFact(
        figure=figure,
        ratio=number,
        larger=larger,
        values=values,
        of_values=len(ratios),
        first_step=first,
        text=_text(number, factors=factors),
    )


def _whole_number(ratio: float) -> tuple[int, str] | None:
    """The whole number a ratio is, and the side that is larger; None for 1 and for what is none."""
    larger, size = ("candidate", ratio) if ratio >= 1 else ("baseline", 1 / ratio if ratio > 0 else 0.0)
    number = round(size) if size < LARGEST else 0
    return (number, larger) if number > 1 and _near(size, number) else None


def _shows(ratio: float, whole: tuple[int, str]) -> bool:
    return _whole_number(ratio) == whole


def _near(size: float, number: int) -> bool:
    return abs(size / number - 1) <= TOLERANCE


def _text(number: int, *, factors: Factors) -> str:
    """`ratio 8 = 4 x 2 observed (4 ranks, 2 micro-batches); no attribution`, or without factors."""
    for side in (1, 0):
        ranks, microbatches = factors.ranks[side], factors.microbatches[side]
        if ranks * microbatches == number and ranks > 1 and microbatches > 1:
            parts = f"({ranks} ranks, {microbatches} micro-batches)"
            return f"ratio {number} = {ranks} x {microbatches} observed {parts}; no attribution"
        if number == ranks:
            return f"ratio {number} observed ({ranks} ranks); no attribution"
        if number == microbatches:
            return f"ratio {number} observed ({microbatches} micro-batches); no attribution"
    return f"ratio {number} observed; no attribution"
