"""What round-off or repetition explains at each slot, and from where on a candidate leaves it (CP-10, CP-10a): pure.

A *draw* is another run of the baseline: perturbed by a unit in the last place, or simply repeated. How far a slot of
the candidate is from the baseline is divided by how far the draws typically are. The limit is the largest such ratio
that a draw reaches over all slots when it is left out and takes the candidate's place. Under the null hypothesis the
candidate is one more draw, so it exceeds the limit anywhere with a probability of at most 1 / (draws + 1).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from paritrace.compare.strengths import Strengths

MIN_DRAWS = 4  # below, a rate of at most 1 / (n + 1) is no statement worth making (CP-10)
FIGURES = ("error", "norm", "bias")
Place = tuple[int, str, int]
"""A slot of the baseline: id of its call, "i" or "o", index among the call's inputs or outputs; or a figure of a step:
the step, its group ("loss", "grad_norm"), the micro-batch."""

JUDGED = frozenset({"o", "loss", "grad_norm"})  # what a finding can be about; inputs only say what came in


class Excess(NamedTuple):
    """How far one slot of the candidate is out, by one of the three figures.

    `ratio` is to the median of the draws (of `bias` it is the figure itself), `reached` the largest ratio of this
    figure that stays inside. `error` and `expected` are the sampled relative error and the draws' median of it.
    """

    figure: str
    ratio: float
    reached: float
    error: float
    expected: float

    @property
    def beyond(self) -> bool:
        return self.ratio > self.reached


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """Draws of the baseline, slot by slot, and their calibration.

    `limit` holds for the largest of the three figures, each in `units` of what the draws reach typically. `wide` are
    places at which the draws differ from the baseline; at every other place all draws agree with it.
    """

    num_draws: int
    draws: Mapping[Place, tuple[Strengths, ...]]
    units: Strengths
    limit: float

    @property
    def false_rate(self) -> float:
        """The largest probability that a candidate which is one more draw exceeds the limit anywhere."""
        return 1.0 / (self.num_draws + 1)

    def excess(self, place: Place, found: Strengths) -> Excess | None:
        """How far the candidate is out at a place; None where the envelope has no width or no figure."""
        draws = self.draws.get(place)
        if draws is None:
            return None
        ratios = _ratios(found, draws)
        if ratios is None:
            return None
        inside = Strengths(*(self.limit * unit for unit in self.units))
        told = _told(ratios, inside)
        expected = median(draw.error for draw in draws)
        return Excess(FIGURES[told], ratios[told], inside[told], found.error, expected)


def _told(ratios: Strengths, inside: Strengths) -> int:
    """The figure to tell: the first that is beyond, the error before the others; else the one furthest out."""
    beyond = [figure for figure in range(3) if ratios[figure] > inside[figure]]
    if beyond:
        return beyond[0]
    return max(range(3), key=lambda figure: ratios[figure] / inside[figure] if inside[figure] else 0.0)


def calibrate(draws: Mapping[Place, Sequence[Strengths | None]]) -> Envelope | None:
    """Make an envelope of draws; None with fewer than `MIN_DRAWS`, or where no place has any width.

    `draws` has one entry per draw at each place, None where a figure could not be stated: such a place is left out.
    """
    whole = {place: tuple(found) for place, found in _whole(draws)}
    num_draws = max((len(found) for found in whole.values()), default=0)
    whole = {place: found for place, found in whole.items() if len(found) == num_draws}
    wide = [found for place, found in whole.items() if place[1] in JUDGED and _has_width(found)]
    if num_draws < MIN_DRAWS or not wide:
        return None
    most = [_most(wide, left_out) for left_out in range(num_draws)]
    units = Strengths(*(median(found[figure] for found in most) for figure in range(3)))
    limit = max(_joint(found, units) for found in most)
    return Envelope(num_draws=num_draws, draws=whole, units=units, limit=limit)


def _whole(draws: Mapping[Place, Sequence[Strengths | None]]) -> Iterator[tuple[Place, list[Strengths]]]:
    for place, found in draws.items():
        known = [strength for strength in found if strength is not None]
        if len(known) == len(found):
            yield place, known


def _has_width(draws: Sequence[Strengths]) -> bool:
    """Whether the draws typically differ from the baseline here, also when any one of them is left out."""
    return sum(draw.error > 0.0 for draw in draws) > (len(draws) + 1) // 2 + 1


def _most(wide: Sequence[tuple[Strengths, ...]], left_out: int) -> Strengths:
    """The largest ratio of each figure that one draw reaches over all places, against the others."""
    most = [0.0, 0.0, 0.0]
    for draws in wide:
        ratios = _ratios(draws[left_out], (*draws[:left_out], *draws[left_out + 1 :]))
        if ratios is not None:
            most = [max(pair) for pair in zip(most, ratios, strict=True)]
    return Strengths(*most)


def _ratios(found: Strengths, draws: Sequence[Strengths]) -> Strengths | None:
    """A slot's figures in medians of the draws; the bias is a ratio already. None where the draws have no width."""
    error, norm = median(draw.error for draw in draws), median(draw.norm for draw in draws)
    if error == 0.0:
        return None
    return Strengths(found.error / error, found.norm / norm if norm > 0.0 else 0.0, found.bias)


def _joint(ratios: Strengths, units: Strengths) -> float:
    return max((ratio / unit for ratio, unit in zip(ratios, units, strict=True) if unit > 0.0), default=0.0)
