"""Fold laws: what the evidence of the parts of a tensor says of the whole (CA-8).

The parts must be a *partition*: every element in exactly one part. Replicas hold elements twice, and pending sums
(`Partial`) hold none of them yet; neither folds, and `partition_gap` says so. A fold never guesses: a part without a
value leaves the whole without one.
"""

import math
from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct

from paritrace.evidence.boxes import Box, Tiling, tiling
from paritrace.evidence.calls import Counts, Moments
from paritrace.evidence.fingerprints import WORD_BYTES, fold_xor
from paritrace.evidence.gaps import CaptureGap, Gap
from paritrace.evidence.mixing import MASK


class FoldGap(StrEnum):
    """Why the evidence of parts says nothing of a whole."""

    NO_PARTS = "no_parts"
    PART_UNKNOWN = "part_unknown"  # some part was not recorded, or has a gap
    RANK_MISSING = "rank_missing"  # some part was on a rank that left no record
    REPLICAS = "replicas"  # some element lies in two parts
    INCOMPLETE = "incomplete"  # some element lies in no part
    OUTSIDE = "outside"  # some part reaches beyond the whole
    PENDING_SUM = "pending_sum"  # the parts are terms of a sum that no collective has added yet
    UNLIKE_REPLICAS = "unlike_replicas"  # ranks that should hold the same part do not
    NO_PLACEMENT = "no_placement"  # where the parts lie in the whole was neither recorded nor declared
    NOT_ONE_BOX = "not_one_box"  # the local part is no box of the whole
    NO_SUCH_AXIS = "no_such_axis"  # a declared axis that this run's mesh does not have


FoldedSum = int | Gap[FoldGap]
_OF_TILING = {
    Tiling.OUTSIDE: FoldGap.OUTSIDE,
    Tiling.OVERLAPPING: FoldGap.REPLICAS,
    Tiling.INCOMPLETE: FoldGap.INCOMPLETE,
}


def partition_gap(shape: tuple[int, ...], boxes: Sequence[Box]) -> Gap[FoldGap] | None:
    """Why these boxes are no partition of a whole of `shape`; None when they are one."""
    if not boxes:
        return Gap(FoldGap.NO_PARTS)
    found = tiling(shape, tuple(boxes))
    return None if found is Tiling.EXACT else Gap(_OF_TILING[found])


def fold_elements(parts: Sequence[int | Gap[CaptureGap] | None]) -> FoldedSum:
    """A whole's additive fingerprint (`elements-u64`, `indexed-u64`) from those of a partition: their sum mod 2^64."""
    if not parts:
        return Gap(FoldGap.NO_PARTS)
    total = 0
    for part in parts:
        if not isinstance(part, int):
            return Gap(FoldGap.PART_UNKNOWN)
        total += part
    return total & MASK


class FoldedXor(Struct, frozen=True):
    """An XOR that folds: `width` in bytes is 4 where words do, else that of an element, and never more than that."""

    value: int
    width: int


def fold_xors(parts: Sequence[int], *, itemsize: int, aligned: bool) -> FoldedXor | Gap[FoldGap]:
    """The XOR of a whole from the XORs (`flat-u32-le-v1`, one region) of a partition.

    `aligned`: every run of every part is whole words (`boxes.is_word_aligned`). Otherwise elements of fewer than four
    bytes stand elsewhere in their word in the part than in the whole, and only the XOR folded to their width is that
    of the whole (N-08). Compare with `xor_at_width` of the whole. An XOR never shows a part that is there twice.
    """
    if not parts:
        return Gap(FoldGap.NO_PARTS)
    width = WORD_BYTES if aligned or itemsize >= WORD_BYTES else itemsize
    total = 0
    for part in parts:
        total ^= xor_at_width(part, width)
    return FoldedXor(total, width)


def xor_at_width(value: int, width: int) -> int:
    """An XOR of words, folded to `width` bytes (4 leaves it as it is)."""
    return fold_xor(value, width)


def fold_counts(parts: Sequence[Counts | None]) -> Counts | Gap[FoldGap]:
    """Counts add up."""
    if not parts:
        return Gap(FoldGap.NO_PARTS)
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return Gap(FoldGap.PART_UNKNOWN)
    return Counts(*(sum(getattr(part, name) for part in known) for name in Counts.__struct_fields__))


def fold_moments(parts: Sequence[Moments | None]) -> Moments | Gap[FoldGap]:
    """Minimum and maximum fold exactly; sums add up to round-off.

    A part without a finite value contributes nothing; where the sum of some part is beyond float64, so is the whole's.
    """
    if not parts:
        return Gap(FoldGap.NO_PARTS)
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return Gap(FoldGap.PART_UNKNOWN)
    held = [part for part in known if part.min is not None]
    if not held:
        return Moments(None, None, None, None, None)
    return Moments(
        min(part.min for part in held if part.min is not None),
        max(part.max for part in held if part.max is not None),
        _sum([part.sum for part in held]),
        _sum([part.sum_squares for part in held]),
        max(part.abs_max for part in held if part.abs_max is not None),
    )


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    try:
        total = math.fsum(known)
    except OverflowError:
        return None
    return total if math.isfinite(total) else None
