"""The record of an element-wise comparison of two tensors that were kept whole (CP-11)."""

from msgspec import Struct

Index = tuple[int, ...]


class ElementFigures(Struct, frozen=True):
    """Figures over all elements of a slot that no mask leaves out.

    A NaN never passes: an element that is not finite on one side, or another infinity, is a mismatch
    (`num_non_finite_apart`), and one that is NaN on both sides is in `num_nan_both` and agrees with nothing. Sizes are
    over elements that are finite on both sides; None where there is none.

    `num_other_bits` counts elements with other bits (None between unlike dtypes), `num_mismatches` those with another
    value: 0.0 and -0.0 are one value. `max_relative` is relative to the baseline's element, of those where it is not 0;
    `num_from_zero` are the others that differ. `ulps` is a histogram of the distances in units in the last place of
    elements with other bits, as (largest distance of the bucket, number), empty buckets left out; the last bucket has
    no bound and is spelt -1. Indices are in the tensor's dims, the first in logical order; () where there is none, and
    in a tensor without dims.
    """

    num_elements: int
    num_masked: int
    num_other_bits: int | None
    num_mismatches: int
    num_non_finite: tuple[int, int]  # baseline, candidate
    num_non_finite_apart: int
    num_nan_both: int
    first: Index = ()
    first_values: tuple[str, str] = ("", "")
    first_non_finite: Index = ()
    max_absolute: float | None = None
    max_absolute_at: Index = ()
    max_relative: float | None = None
    num_from_zero: int = 0
    max_ulp: int | None = None
    ulps: tuple[tuple[int, int], ...] = ()
    cosine: float | None = None
    mask: str = ""  # the declared mask, as it was named
