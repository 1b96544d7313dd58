"""How much error a call adds to what came in, against what it adds to round-off (CP-8b, CP-10a)."""

from collections.abc import Iterable
from statistics import median
from typing import NamedTuple

import numpy as np

from paritrace.compare.envelope import Excess, Place
from paritrace.compare.leaving_out import Table, left_out
from paritrace.compare.measured import Measured


class Gain(NamedTuple):
    """The largest sampled error among a call's inputs, and by how much its output's is larger; None where not known.

    `expected` is the draws' median of the gain.
    """

    came_in: float | None
    gain: float | None
    expected: float | None

    def grown(self, reached: float) -> Excess | None:
        """The gain as a figure of its own (figure "gain"), in medians of the draws' gains; `reached` stays inside."""
        if self.gain is None or not self.expected:
            return None
        return Excess("gain", self.gain / self.expected, reached, self.gain, self.expected)


def gain_of(measured: Measured, i: int) -> Gain:
    """The gain of one call over the inputs and outputs that both sides and all draws have."""
    inputs, outputs = (_shared(measured, i, side) for side in ("i", "o"))
    came_in = max(inputs.values(), default=None)
    own = max(outputs.values()) / came_in if outputs and came_in else None
    draws = _of_draws(measured, list(inputs), list(outputs))
    return Gain(came_in, own, None if draws is None else median(draws))


def gain_reached(measured: Measured, calls: Iterable[int]) -> float:
    """The largest gain of a draw that is left out, in medians of the others', at any of these calls."""
    gains = [_of_draws(measured, list(_shared(measured, i, "i")), list(_shared(measured, i, "o"))) for i in calls]
    known = [draws for draws in gains if draws is not None]
    if not known:
        return 0.0
    table: Table = np.asarray(known)[:, :, None]
    middle = left_out(table)[:, :, 0].T
    ratios = np.divide(table[:, :, 0], middle, out=np.zeros_like(middle), where=middle > 0.0)
    return float(ratios.max())


def _shared(measured: Measured, i: int, side: str) -> dict[Place, float]:
    """The sampled error of each slot of one direction that an envelope knows."""
    named = ((measured.place_of(i, side, place), found) for place, found in measured.slots(i, side).items())
    return {at: found.error for at, found in named if found is not None and at in measured.envelope.places}


def _of_draws(measured: Measured, inputs: list[Place], outputs: list[Place]) -> list[float] | None:
    """The gain of every draw; None where one of them has none."""
    if not inputs or not outputs:
        return None
    came_in, left = (measured.envelope.largest_errors(places) for places in (inputs, outputs))
    if not (came_in > 0.0).all():
        return None
    found: list[float] = (left / came_in).tolist()
    return found
