"""What round-off or repetition explains at each slot, and from where on a candidate leaves it (CP-10, CP-10a): pure.

A *draw* is another run of the baseline: perturbed by a unit in the last place, or simply repeated. How far a slot is
from the baseline is divided by how far the draws typically are. The candidate is held against each draw in turn, both
measured by the draws that are left; it leaves the envelope where it is further out than every one of them is anywhere.
Of runs that are exchangeable at most one can be further out than all the others, so a candidate that is one more draw
is so with a probability of at most 1 / (draws + 1): no approximation, whatever the figures' distribution (the pairing
is that of the jackknife+, Barber and others 2021). Over several ranks a draw is one job: its furthest rank counts.
Values that are not finite, where the baseline has none, are further out than any size: of a draw they leave nothing
beyond, of a candidate they are beyond where no draw has any.

A run that moves less than the draws do is shifted to one side in its own small standard errors easily: one scalar that
rounds otherwise scales a whole gradient. So a bias is told in the draws' standard errors where these are the larger.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from paritrace.compare.leaving_out import Table, left_out
from paritrace.compare.strengths import Strengths
from paritrace.compare.tabulated import Place, Tabulated

__all__ = ["Place"]

MIN_DRAWS = 4  # below, a rate of at most 1 / (n + 1) is no statement worth making (CP-10)
FIGURES = ("error", "norm", "bias")
BIAS = FIGURES.index("bias")
LEAST_BIAS = 4.0  # standard errors: less of a shift is no statement, however little the draws are shifted
APPEARED = "non_finite"  # values that are not finite, where the baseline and all of its draws have none
ANYWHERE = 1e100  # units: as far as this a draw goes that is not finite somewhere; a number, as JSON knows no infinity
CAME_IN = "i"  # inputs only say what came in; a finding can be about anything else


class Excess(NamedTuple):
    """How far one slot of the candidate is out, by one of the three figures.

    `ratio` is to the median of the draws (of `bias` it is the figure itself), `reached` the largest ratio of this
    figure that stays inside here. `error` and `expected` are the sampled relative error and the draws' median of it;
    `bias` is how many standard errors, its own or the draws', the samples are shifted to one side, and `bias_reached`
    what of it stays inside.
    """

    figure: str
    ratio: float
    reached: float
    error: float
    expected: float
    bias: float = 0.0
    bias_reached: float = 0.0

    @property
    def beyond(self) -> bool:
        return self.ratio > self.reached

    @property
    def unbounded(self) -> bool:
        """Whether no size is beyond here, because a draw has values that are not finite."""
        return self.reached >= ANYWHERE


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """Draws of the baseline, slot by slot, and their calibration.

    `places` numbers the slots; `table` holds the draws' figures, `middle` what a figure is divided by, both by that
    number. `units` is what a draw that is left out typically reaches of each figure somewhere; `limits` how many such
    units each draw reaches anywhere, as the other draws measure it.
    """

    places: Mapping[Place, int]
    table: Table
    middle: Table
    without: Table  # draws x places x figures: the largest figures that one unit allows without one of the draws
    units: Strengths
    limits: tuple[float, ...]
    inside: Table  # the largest ratios that stay inside, by place; 0 where the draws have no width
    widths: Table  # the largest median error by place, whichever draw is left out: what a bias is told in
    of_another: bool = False  # the draws are of another run than the baseline, named to judge it

    @property
    def num_draws(self) -> int:
        return len(self.limits)

    @property
    def false_rate(self) -> float:
        """The largest probability that a candidate which is one more draw is beyond anywhere."""
        return 1.0 / (self.num_draws + 1)

    def jointly(self, limits: Sequence[float]) -> "Envelope":
        """The same with what each draw reaches on the furthest of several ranks: one rate for all of them."""
        return replace(self, limits=tuple(limits), inside=_inside(self.without, self.middle, limits))

    def largest_errors(self, places: Sequence[Place]) -> Table:
        """The largest sampled error of each draw over slots that are in the table."""
        found: Table = self.table[[self.places[place] for place in places], :, 0].max(axis=0)
        return found

    def largest_error_inside(self, place: Place) -> float | None:
        """Up to which sampled error a slot stays inside; None where the draws have no width there."""
        at = self.places.get(place)
        inside = 0.0 if at is None else float(self.inside[at, 0] * self.middle[at, 0])
        return inside if inside > 0.0 and math.isfinite(inside) else None

    def excess(self, place: Place, found: Strengths) -> Excess | None:
        """How far the candidate is out at a place; None where the envelope has no width or no figure."""
        at = self.places.get(place)
        if math.isinf(found.error) and max(self.limits) >= ANYWHERE:
            return None
        if at is not None and math.isinf(found.error):
            return Excess(APPEARED, math.inf, 1.0, math.inf, float(self.middle[at, 0]))
        if at is None or not self.inside[at].any():
            return None
        inside = Strengths(*self.inside[at].tolist())
        ratios = self._ratios(at, found)
        told = _told(ratios, inside)
        expected = float(self.middle[at, 0])
        return Excess(FIGURES[told], ratios[told], inside[told], found.error, expected, ratios.bias, inside.bias)

    def is_typical(self, place: Place, found: Strengths) -> bool:
        """Whether no figure is further out than a draw typically reaches somewhere; true where there is no width."""
        at = self.places.get(place)
        if math.isinf(found.error):
            return False
        if at is None or not self.inside[at].any():
            return True
        return all(ratio <= unit for ratio, unit in zip(self._ratios(at, found), self.units, strict=True))

    def _ratios(self, at: int, found: Strengths) -> Strengths:
        pairs = zip(found, self.middle[at].tolist(), strict=True)
        ratios = Strengths(*(figure / middle if middle > 0.0 else 0.0 for figure, middle in pairs))
        width = float(self.widths[at])
        return ratios._replace(bias=ratios.bias * min(1.0, found.error / width)) if width > 0.0 else ratios


def _told(ratios: Strengths, inside: Strengths) -> int:
    """The figure to tell: the first that is beyond, the error before the others; else the one furthest out."""
    beyond = [figure for figure in range(3) if ratios[figure] > inside[figure]]
    if beyond:
        return beyond[0]
    return max(range(3), key=lambda figure: ratios[figure] / inside[figure] if inside[figure] else 0.0)


def calibrate(draws: Tabulated) -> Envelope | None:
    """Make an envelope of draws; None with fewer than `MIN_DRAWS`, or where no place has any width."""
    whole, table, not_finite = draws
    judged = [at for at, place in enumerate(whole) if place[1] != CAME_IN]
    if table.shape[1] < MIN_DRAWS or not judged:
        return None
    without = _divisors(left_out(table))
    if not (without[:, judged, 0] > 0.0).all(axis=0).any():
        return None
    units, fewer, limits = _calibrated(table[judged], without[:, judged])
    limits = [ANYWHERE if draw in not_finite else limit for draw, limit in enumerate(limits)]
    middle = _divisors(np.median(table, axis=1))
    widths: Table = without[:, :, 0].max(axis=0)
    allowed = without * fewer[:, None, :] * (without[:, :, :1] > 0.0).all(axis=0)
    return Envelope(
        places={place: at for at, place in enumerate(whole)},
        table=table,
        middle=middle,
        without=allowed,
        units=Strengths(*units.tolist()),
        limits=tuple(limits),
        inside=_inside(allowed, middle, limits),
        widths=widths,
    )


def _divisors(medians: Table) -> Table:
    """By what figures are divided: the draws' medians, and 1 for the bias, which is a ratio as it is."""
    medians[..., BIAS] = 1.0
    return medians


def _calibrated(table: Table, without: Table) -> tuple[Table, Table, list[float]]:
    """The units of all draws, those without each of them, and how many of the latter that draw reaches."""
    num_draws = table.shape[1]
    reached = np.stack([_most(table[:, draw], without[draw]) for draw in range(num_draws)])
    units = np.median(reached, axis=0)
    fewer = np.empty_like(reached)
    for draw in range(num_draws):
        rest = np.delete(table, draw, axis=1)
        less = _divisors(left_out(rest))
        fewer[draw] = np.median([_most(rest[:, other], less[other]) for other in range(num_draws - 1)], axis=0)
    in_units = np.divide(reached, fewer, out=np.zeros_like(reached), where=fewer > 0.0)
    return units, fewer, in_units.max(axis=1).tolist()


def _most(one: Table, middle: Table) -> Table:
    """The largest of each figure that one run reaches over all places, in medians of the others."""
    wide = (middle[:, :1] > 0.0) & (middle > 0.0)
    ratios = np.divide(one, middle, out=np.zeros_like(one), where=wide)
    ratios[:, BIAS] *= np.minimum(1.0, ratios[:, 0])
    found: Table = ratios.max(axis=0)
    return found


def _inside(without: Table, middle: Table, limits: Sequence[float]) -> Table:
    """The largest ratios that do not pass every draw."""
    allowed = (without * np.asarray(limits)[:, None, None]).max(axis=0)
    found: Table = np.divide(allowed, middle, out=np.zeros_like(allowed), where=middle > 0.0)
    wide = found.any(axis=1)
    found[wide, BIAS] = np.maximum(found[wide, BIAS], LEAST_BIAS)
    if max(limits) >= ANYWHERE:
        found[wide] = ANYWHERE
    return found
