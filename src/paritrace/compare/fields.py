"""The class of a difference between two slots, the first that applies, with its size where it can be told (CP-7)."""

from collections.abc import Callable
from typing import NamedTuple

from msgspec.structs import replace

from paritrace.compare.result import DifferenceClass, SlotDifference
from paritrace.compare.samples import (
    Sampled,
    constant_scale,
    num_distinct,
    same_values,
    sampled,
    signs_only,
    size_of,
)
from paritrace.compare.slots import SlotPair
from paritrace.evidence.calls import Counts, Detail, Kind, Moments
from paritrace.evidence.dtypes import Component, dtype_of
from paritrace.evidence.fingerprints import region_ranges

MIN_DISTINCT_FOR_ORDER = 64  # masks, ids and constants share their elements by chance (CA-7, N-07)
NARROW = {"float64": ("float32",), "float32": ("bfloat16", "float16")}


def difference_of(name: str, pair: SlotPair) -> SlotDifference:
    """Describe how two slots that do not agree differ."""
    first, second = pair.kinds
    if first.shape != second.shape:
        return SlotDifference(name, DifferenceClass.SHAPE, kind_text(first), kind_text(second))
    ours, theirs = pair.details
    values = _sampled(pair)
    if first.dtype != second.dtype:
        return _dtype(name, pair, values)
    if ours is None or theirs is None:
        return SlotDifference(
            name, DifferenceClass.BITS_ONLY, _bits(pair.baseline.bits), _bits(pair.candidate.bits), note=NO_DETAIL
        )
    rule = next((rule for rule in _RULES if rule.holds(pair, values)), _OTHERWISE)
    return _folded(rule.told(name, pair, values), ours, theirs)


def class_of(pair: SlotPair) -> DifferenceClass:
    """The class that `difference_of` tells, without what it tells beside it."""
    first, second = pair.kinds
    if first.shape != second.shape:
        return DifferenceClass.SHAPE
    if first.dtype != second.dtype:
        return DifferenceClass.DTYPE
    if any(detail is None for detail in pair.details):
        return DifferenceClass.BITS_ONLY
    values = _sampled(pair)
    return next((rule for rule in _RULES if rule.holds(pair, values)), _OTHERWISE).of


NO_DETAIL = "only fingerprints were recorded here; capture with --level module for sizes"


class Rule(NamedTuple):
    """One class: when a pair with summaries on both sides is of it, and what is told then."""

    of: DifferenceClass
    holds: Callable[[SlotPair, Sampled | None], bool]
    told: Callable[[str, SlotPair, Sampled | None], SlotDifference]


def _folded(found: SlotDifference, ours: Detail, theirs: Detail) -> SlotDifference:
    """Captures with other numbers of regions share only the whole: one XOR is never split (CP-24)."""
    if len(ours.regions) == len(theirs.regions):
        return found
    note = f"folded: {len(ours.regions) // 16} regions against {len(theirs.regions) // 16}"
    return _with_note(found, f"{found.note}; {note}" if found.note else note)


def kind_text(kind: Kind) -> str:
    """A kind in words: dtype and shape."""
    return f"{kind.dtype}[{', '.join(str(size) for size in kind.shape)}]"


def _details(pair: SlotPair) -> tuple[Detail, Detail]:
    ours, theirs = pair.details
    assert ours is not None
    assert theirs is not None  # `difference_of` asks the rules only where both were recorded
    return ours, theirs


def _sampled(pair: SlotPair) -> Sampled | None:
    ours, theirs = pair.details
    if ours is None or theirs is None or pair.kinds[0].num_elements != pair.kinds[1].num_elements:
        return None
    return sampled((ours.samples, pair.kinds[0].dtype), (theirs.samples, pair.kinds[1].dtype))


def _dtype(name: str, pair: SlotPair, values: Sampled | None) -> SlotDifference:
    first, second = pair.kinds
    found = SlotDifference(name, DifferenceClass.DTYPE, kind_text(first), kind_text(second))
    return _with_sizes(found, pair, values)


def _is_non_finite(pair: SlotPair, _: Sampled | None) -> bool:
    ours, theirs = _details(pair)
    left, right = _infinite(ours.counts), _infinite(theirs.counts)
    return left is not None and right is not None and left != right


def _non_finite(name: str, pair: SlotPair, _: Sampled | None) -> SlotDifference:
    told = [_told(infinite) for of in _details(pair) if (infinite := _infinite(of.counts)) is not None]
    return SlotDifference(name, DifferenceClass.NON_FINITE_APPEARED, told[0], told[1], byte_ranges=_ranges(pair))


def _is_other_order(pair: SlotPair, values: Sampled | None) -> bool:
    ours, theirs = _details(pair)
    if not ours.elements or ours.elements != theirs.elements or values is None:
        return False
    return not _few(pair) and num_distinct(values) >= MIN_DISTINCT_FOR_ORDER


def _other_order(name: str, pair: SlotPair, values: Sampled | None) -> SlotDifference:
    told = f"elements {_details(pair)[0].elements[:8]}"
    found = SlotDifference(name, DifferenceClass.SAME_ELEMENTS_OTHER_ORDER, told, told)
    return found if values is None else _sized(found, pair, values)


def _few(pair: SlotPair) -> bool:
    return pair.kinds[0].num_elements < MIN_DISTINCT_FOR_ORDER


def _is_same_values(pair: SlotPair, values: Sampled | None) -> bool:
    """Equal numbers in other bits can be told only when nothing but the zeros' signs (or NaN payloads) can differ."""
    ours, theirs = _details(pair)
    if values is None or not same_values(values) or ours.counts is None or theirs.counts is None:
        return False
    moments_agree = ours.moments == theirs.moments and _without_zeros(ours.counts) == _without_zeros(theirs.counts)
    zeros_differ = ours.counts.negative_zero != theirs.counts.negative_zero
    all_sampled = pair.kinds[0].num_elements <= values.baseline.size
    return moments_agree and (zeros_differ or all_sampled)


def _same_values(name: str, pair: SlotPair, _: Sampled | None) -> SlotDifference:
    told = [f"{of.counts.negative_zero} negative zeros" for of in _details(pair) if of.counts is not None]
    return SlotDifference(
        name,
        DifferenceClass.SAME_VALUES_OTHER_BITS,
        told[0],
        told[1],
        num_samples_differing=_num_differing(pair),
        byte_ranges=_ranges(pair),
    )


def _is_signs(pair: SlotPair, values: Sampled | None) -> bool:
    ours, theirs = _details(pair)
    if values is None or not signs_only(values) or ours.moments is None or theirs.moments is None:
        return False
    return ours.moments.sum_squares == theirs.moments.sum_squares


def _signs(name: str, pair: SlotPair, values: Sampled | None) -> SlotDifference:
    return _with_sizes(_plain(name, DifferenceClass.SIGNS_ONLY, pair), pair, values)


def _is_scale(_: SlotPair, values: Sampled | None) -> bool:
    return values is not None and constant_scale(values) is not None


def _scale(name: str, pair: SlotPair, values: Sampled | None) -> SlotDifference:
    factor = None if values is None else constant_scale(values)
    assert factor is not None  # `_is_scale` said so
    found = _with_sizes(_plain(name, DifferenceClass.CONSTANT_SCALE, pair), pair, values)
    return _with_note(found, f"x{factor:.6g}")


def _narrow_sides(pair: SlotPair) -> tuple[bool, bool] | None:
    """Of which sides every element fits bfloat16; None where that was not counted."""
    ours, theirs = _details(pair)
    if pair.kinds[0].dtype != "float32" or ours.counts is None or theirs.counts is None:
        return None
    total = pair.kinds[0].num_elements
    return (ours.counts.low_bits_zero == total, theirs.counts.low_bits_zero == total)


def _is_narrower(pair: SlotPair, values: Sampled | None) -> bool:
    """One side went through bfloat16: every element's low bits are zero there, and not on the other side."""
    narrow = _narrow_sides(pair)
    return values is not None and narrow is not None and narrow[0] != narrow[1]


def _narrower(name: str, pair: SlotPair, values: Sampled | None) -> SlotDifference:
    side = "baseline" if _narrow_sides(pair) == (True, False) else "candidate"
    found = _with_sizes(_plain(name, DifferenceClass.NARROWER_DTYPE, pair), pair, values)
    return _with_note(found, f"every element of the {side} fits bfloat16")


def _is_discrete(pair: SlotPair, _: Sampled | None) -> bool:
    component = dtype_of(pair.kinds[0].dtype).component
    if component is None or component in _FLOATS:
        return False
    return not pair.kinds[0].dtype.startswith(("float8", "complex"))


def _discrete(name: str, pair: SlotPair, values: Sampled | None) -> SlotDifference:
    """Integers and bools that differ are choices, not magnitudes: how many, not how far."""
    differing = _num_differing(pair)
    told = "not estimable" if values is None else f"{differing} of {values.baseline.size} sampled elements"
    found = _plain(name, DifferenceClass.DISCRETE_CHOICE, pair)
    return replace(found, num_samples_differing=differing, note=f"{told} differ")


def _is_sparse(pair: SlotPair, values: Sampled | None) -> bool:
    return values is not None and _num_differing(pair) == 0


def _sparse(name: str, pair: SlotPair, _: Sampled | None) -> SlotDifference:
    found = _plain(name, DifferenceClass.SPARSE_OR_BELOW_SAMPLING, pair)
    return replace(found, num_samples_differing=0, note="no sampled element differs: few elements do")


def _always(_pair: SlotPair, _of: Sampled | None) -> bool:
    return True


def _values(name: str, pair: SlotPair, values: Sampled | None) -> SlotDifference:
    return _with_sizes(_plain(name, DifferenceClass.VALUES, pair), pair, values)


def _with_sizes(found: SlotDifference, pair: SlotPair, values: Sampled | None) -> SlotDifference:
    return found if values is None else _sized(found, pair, values)


_FLOATS = frozenset({Component.FLOAT64, Component.FLOAT32, Component.FLOAT16, Component.BFLOAT16})
_RULES = (
    Rule(DifferenceClass.NON_FINITE_APPEARED, _is_non_finite, _non_finite),
    Rule(DifferenceClass.SAME_ELEMENTS_OTHER_ORDER, _is_other_order, _other_order),
    Rule(DifferenceClass.SAME_VALUES_OTHER_BITS, _is_same_values, _same_values),
    Rule(DifferenceClass.SIGNS_ONLY, _is_signs, _signs),
    Rule(DifferenceClass.CONSTANT_SCALE, _is_scale, _scale),
    Rule(DifferenceClass.NARROWER_DTYPE, _is_narrower, _narrower),
    Rule(DifferenceClass.DISCRETE_CHOICE, _is_discrete, _discrete),
    Rule(DifferenceClass.SPARSE_OR_BELOW_SAMPLING, _is_sparse, _sparse),
)
_OTHERWISE = Rule(DifferenceClass.VALUES, _always, _values)


def _plain(name: str, difference_class: DifferenceClass, pair: SlotPair) -> SlotDifference:
    ours, theirs = _details(pair)
    return SlotDifference(
        name, difference_class, _moments(ours.moments), _moments(theirs.moments), byte_ranges=_ranges(pair)
    )


def _sized(found: SlotDifference, pair: SlotPair, values: Sampled) -> SlotDifference:
    size = size_of(values, differing=_num_differing(pair))
    return SlotDifference(
        found.slot,
        found.difference_class,
        found.baseline,
        found.candidate,
        relative_error=size.relative_error,
        bias=size.bias,
        max_ulp=size.max_ulp,
        num_samples_differing=size.num_differing,
        byte_ranges=_ranges(pair),
        note=found.note,
    )


def _with_note(found: SlotDifference, note: str) -> SlotDifference:
    return replace(found, note=note)


def _num_differing(pair: SlotPair) -> int:
    """How many sampled elements have other bits; across dtypes, another value."""
    ours, theirs = _details(pair)
    if pair.kinds[0].dtype != pair.kinds[1].dtype:
        values = _sampled(pair)
        return 0 if values is None else int((values.baseline != values.candidate).sum())
    width = 2 * dtype_of(pair.kinds[0].dtype).itemsize
    left, right = ours.samples, theirs.samples
    return sum(left[at : at + width] != right[at : at + width] for at in range(0, len(left), width))


def _ranges(pair: SlotPair) -> tuple[tuple[int, int], ...]:
    """The byte ranges whose fingerprints differ; none are told when captures have unequal regions (CP-24)."""
    ours, theirs = _details(pair)
    if len(ours.regions) != len(theirs.regions) or not ours.regions:
        return ()
    count = len(ours.regions) // 16
    ranges = region_ranges(pair.kinds[0].logical_nbytes, count)
    return tuple(
        ranges[place]
        for place in range(count)
        if ours.regions[16 * place : 16 * place + 16] != theirs.regions[16 * place : 16 * place + 16]
    )


def _infinite(counts: Counts | None) -> tuple[int, int, int] | None:
    return None if counts is None else (counts.nan, counts.positive_infinity, counts.negative_infinity)


def _told(infinite: tuple[int, int, int]) -> str:
    return f"{infinite[0]} NaN, {infinite[1]} +Inf, {infinite[2]} -Inf"


def _without_zeros(counts: Counts) -> tuple[int, ...]:
    return (counts.nan, counts.positive_infinity, counts.negative_infinity, counts.zero, counts.subnormal)


def _moments(moments: Moments | None) -> str:
    if moments is None or moments.sum_squares is None or moments.min is None or moments.max is None:
        return "no finite value"
    return f"min {moments.min:.6g}, max {moments.max:.6g}, norm {moments.sum_squares**0.5:.6g}"


def _bits(bits: object) -> str:
    return bits if isinstance(bits, str) else "not captured"
