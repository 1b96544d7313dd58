"""Matched tasks as arrays, and what they would say if missing verdicts were known: pure (AT-12, AT-14)."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

import numpy as np
import numpy.typing as npt

from paritrace.attempts.statistics.records import TaskOutcomes

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Side:
    """One configuration at the matched tasks: sums and numbers of judged attempts, numbers of those that are not."""

    sums: Array
    num_judged: Array
    num_missing: Array

    @property
    def total_missing(self) -> int:
        """How many attempts have no verdict."""
        return int(self.num_missing.sum())

    def completed(self, value: float) -> Array:
        """Returns each task's mean if every missing attempt had this value."""
        return (self.sums + value * self.num_missing) / (self.num_judged + self.num_missing)

    def revealed(self, counts: Array, value: float) -> "Side":
        """Returns this side with so many missing attempts of each task judged with this value."""
        return Side(self.sums + value * counts, self.num_judged + counts, self.num_missing - counts)


def side_of(tasks: Sequence[TaskOutcomes]) -> Side:
    """Returns the outcomes at matched tasks, in the order given; each task has an attempt."""
    return Side(
        np.array([fsum(task.values) for task in tasks], dtype=float),
        np.array([len(task.values) for task in tasks], dtype=float),
        np.array([task.num_missing for task in tasks], dtype=float),
    )


def differences(baseline: Side, candidate: Side) -> Array:
    """Returns baseline minus candidate at the tasks where both have a verdict: the complete cases."""
    both = (baseline.num_judged > 0) & (candidate.num_judged > 0)
    mine = baseline.sums[both] / baseline.num_judged[both]
    theirs = candidate.sums[both] / candidate.num_judged[both]
    return mine - theirs


def bounds(baseline: Side, candidate: Side, *, low: float, high: float) -> tuple[float, float]:
    """Returns the least and the greatest mean difference that any completion of the missing verdicts gives."""
    least = baseline.completed(low) - candidate.completed(high)
    most = baseline.completed(high) - candidate.completed(low)
    return fsum(least) / len(least), fsum(most) / len(most)


def worst_case(baseline: Side, candidate: Side, *, sign: float, low: float, high: float) -> Array:
    """Returns the differences under the completion that speaks most against a difference of this sign."""
    if sign > 0:
        return baseline.completed(low) - candidate.completed(high)
    return baseline.completed(high) - candidate.completed(low)


@dataclass(frozen=True, slots=True)
class Path:
    """Missing attempts in the order in which they would be revealed against a difference, one after the other.

    First those of the side that is behind, as `high`; then those of the side that is ahead, as `low`. The end of the
    path is the worst-case completion.
    """

    baseline: Side
    candidate: Side
    baseline_leads: bool
    low: float
    high: float
    order_behind: npt.NDArray[np.int64]
    order_ahead: npt.NDArray[np.int64]

    @property
    def num(self) -> int:
        """How many steps the path has."""
        return len(self.order_behind) + len(self.order_ahead)

    def at(self, steps: int) -> Array:
        """Returns the differences after so many steps."""
        ahead, behind = (self.baseline, self.candidate) if self.baseline_leads else (self.candidate, self.baseline)
        behind = behind.revealed(self._counts(self.order_behind[:steps]), self.high)
        ahead = ahead.revealed(self._counts(self.order_ahead[: max(0, steps - len(self.order_behind))]), self.low)
        return differences(ahead, behind) if self.baseline_leads else differences(behind, ahead)

    def _counts(self, places: npt.NDArray[np.int64]) -> Array:
        return np.bincount(places, minlength=len(self.baseline.sums)).astype(float)


def path_against(baseline: Side, candidate: Side, *, sign: float, low: float, high: float) -> Path:
    """Returns the path against a difference of this sign; where an attempt moves most, it comes first."""
    leads = sign > 0
    ahead, behind = (baseline, candidate) if leads else (candidate, baseline)
    return Path(baseline, candidate, leads, low, high, _order(behind, high), _order(ahead, low))


def _order(side: Side, value: float) -> npt.NDArray[np.int64]:
    mean = np.divide(side.sums, side.num_judged, out=np.full_like(side.sums, value), where=side.num_judged > 0)
    moved = np.abs(value - mean) / (side.num_judged + 1)
    by_move = np.argsort(-moved, kind="stable")
    return np.repeat(by_move, side.num_missing[by_move].astype(int))
