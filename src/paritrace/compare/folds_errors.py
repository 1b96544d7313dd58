"""How far two wholes are apart by moments and samples: relative errors, no verdict (CP-12)."""

from math import prod, sqrt
from typing import NamedTuple

import numpy as np

from paritrace.compare.folds_tensors import WholeTensor
from paritrace.compare.samples import Sampled, constant_scale, size_of
from paritrace.evidence.calls import Counts, Moments


class Errors(NamedTuple):
    """Fields as in `folds_result.FoldedSlot`."""

    norm: float | None
    mean: float | None
    bounds: float | None
    samples: float | None
    num_samples: int
    ratio: float | None
    facts: tuple[str, ...]

    @property
    def largest(self) -> float:
        known = (self.norm, self.mean, self.bounds, self.samples)
        return max((value for value in known if value is not None), default=0.0)


def errors(ours: WholeTensor, theirs: WholeTensor) -> Errors:
    """The errors of the second against the first; both have one shape."""
    places = sorted(ours.samples.keys() & theirs.samples.keys())
    left = np.array([ours.samples[index] for index in places])
    right = np.array([theirs.samples[index] for index in places])
    pair = Sampled(left, right, None)
    size = size_of(pair, differing=int(np.count_nonzero(left != right))) if places else None
    norm, mean, bounds = _of_moments(ours.moments, theirs.moments, num_elements=prod(ours.shape))
    return Errors(
        norm=norm,
        mean=mean,
        bounds=bounds,
        samples=None if size is None else size.relative_error,
        num_samples=len(places),
        ratio=constant_scale(pair) if places else None,
        facts=(*ours.facts, *theirs.facts, *_nonfinite(ours.counts, theirs.counts)),
    )


def _of_moments(
    ours: Moments | None, theirs: Moments | None, *, num_elements: int
) -> tuple[float | None, float | None, float | None]:
    if ours is None or theirs is None:
        return None, None, None
    norm = None if ours.sum_squares is None else sqrt(ours.sum_squares)
    other = None if theirs.sum_squares is None else sqrt(theirs.sum_squares)
    return (
        None if other is None else _relative(other, norm, scale=norm),
        _relative(theirs.sum, ours.sum, scale=None if norm is None else norm * sqrt(num_elements)),
        _worse(
            _relative(theirs.min, ours.min, scale=ours.abs_max),
            _relative(theirs.max, ours.max, scale=ours.abs_max),
        ),
    )


def _relative(value: float | None, reference: float | None, *, scale: float | None) -> float | None:
    if value is None or reference is None or scale is None:
        return None
    if value == reference:
        return 0.0
    return abs(value - reference) / scale if scale else None


def _worse(first: float | None, second: float | None) -> float | None:
    known = [value for value in (first, second) if value is not None]
    return max(known, default=None)


def _nonfinite(ours: Counts | None, theirs: Counts | None) -> tuple[str, ...]:
    """Non-finite counts come before any size (CP-7)."""
    if ours is None or theirs is None:
        return ()
    words = {"nan": "NaN", "positive_infinity": "+Inf", "negative_infinity": "-Inf"}
    return tuple(
        f"{word}: {getattr(ours, name):,} against {getattr(theirs, name):,}"
        for name, word in words.items()
        if getattr(ours, name) != getattr(theirs, name)
    )
