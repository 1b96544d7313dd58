"""The class of a difference between two slots, the first that applies, with its size where it can be told (CP-7)."""

from collections.abc import Callable

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
    found = next((told for rule in _RULES if (told := rule(name, pair, values)) is not None), None)
    return _folded(found or _values(name, pair, values), ours, theirs)


NO_DETAIL = "only fingerprints were recorded here; capture with --level module for sizes"
Rule = Callable[[str, SlotPair, Sampled | None], SlotDifference | None]


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
    return found if values is None else _sized(found, pair, values)


def _non_finite(name: str, pair: SlotPair, _: Sampled | None) -> SlotDifference | None:
    ours, theirs = _details(pair)
    left, right = _infinite(ours.counts), _infinite(theirs.counts)
    if left is None or right is None or left == right:
        return None
    return SlotDifference(
        name, DifferenceClass.NON_FINITE_APPEARED, _told(left), _told(right), byte_ranges=_ranges(pair)
    )


def _other_order(name: str, pair: SlotPair, values: Sampled | None) -> SlotDifference | None:
    ours, theirs = _details(pair)
    if not ours.elements or ours.elements != theirs.elements or values is None:
        return None
    if num_distinct(values) < min(MIN_DISTINCT_FOR_ORDER, pair.kinds[0].num_elements) or _few(pair):
        return None
    told = f"elements {ours.elements[:8]}"
    found = SlotDifference(name, DifferenceClass.SAME_ELEMENTS_OTHER_ORDER, told, told)
    return _sized(found, pair, values)


def _few(pair: SlotPair) -> bool:
    return pair.kinds[0].num_elements < MIN_DISTINCT_FOR_ORDER


def _same_values(name: str, pair: SlotPair, values: Sampled | None) -> SlotDifference | None:
    """Equal numbers in other bits can be told only when nothing but the zeros' signs (or NaN payloads) can differ."""
    ours, theirs = _details(pair)
    if values is None or not same_values(values) or ours.counts is None or theirs.counts is None:
        return None
    moments_agree = ours.moments == theirs.moments and _without_zeros(ours.counts) == _without_zeros(theirs.counts)
    zeros_differ = ours.counts.negative_zero != theirs.counts.negative_zero
    all_sampled = pair.kinds[0].num_elements <= values.baseline.size
    if not moments_agree or not (zeros_differ or all_sampled):
        return None
    return SlotDifference(
        name,
        DifferenceClass.SAME_VALUES_OTHER_BITS,
        f"{ours.counts.negative_zero} negative zeros",
        f"{theirs.counts.negative_zero} negative zeros",
        num_samples_differing=_num_differing(pair),
        byte_ranges=_ranges(pair),
    )


def _signs(name: str, pair: SlotPair, values: Sampled | None) -> SlotDifference | None:
    ours, theirs = _details(pair)
    if values is None or not signs_only(values) or ours.moments is None or theirs.moments is None:
        return None
    if ours.moments.sum_squares != theirs.moments.sum_squares:
        return None
    return _sized(_plain(name, DifferenceClass.SIGNS_ONLY, pair), pair, values)


def _scale(name: str, pair: SlotPair, values: Sampled | None) -> SlotDifference | None:
    factor = None if values is None else constant_scale(values)
    if values is None or factor is None:
        return None
    found = _sized(_plain(name, DifferenceClass.CONSTANT_SCALE, pair), pair, values)
    return _with_note(found, f"x{factor:.6g}")


def _narrower(name: str, pair: SlotPair, values: Sampled | None) -> SlotDifference | None:
    """One side went through bfloat16: every element's low bits are zero there, and not on the other side."""
    ours, theirs = _details(pair)
    if pair.kinds[0].dtype != "float32" or values is None or ours.counts is None or theirs.counts is None:
        return None
    total = pair.kinds[0].num_elements
    narrow = (ours.counts.low_bits_zero == total, theirs.counts.low_bits_zero == total)
    if narrow[0] == narrow[1]:
        return None
    side = "baseline" if narrow[0] else "candidate"
    found = _sized(_plain(name, DifferenceClass.NARROWER_DTYPE, pair), pair, values)
    return _with_note(found, f"every element of the {side} fits bfloat16")


def _discrete(name: str, pair: SlotPair, values: Sampled | None) -> SlotDifference | None:
    """Integers and bools that differ are choices, not magnitudes: how many, not how far."""
    component = dtype_of(pair.kinds[0].dtype).component
    if component is None or component in _FLOATS or pair.kinds[0].dtype.startswith(("float8", "complex")):
        return None
    differing = _num_differing(pair)
    told = "not estimable" if values is None else f"{differing} of {values.baseline.size} sampled elements"
    found = _plain(name, DifferenceClass.DISCRETE_CHOICE, pair)
    return _with_note(
        SlotDifference(
            found.slot,
            found.difference_class,
            found.baseline,
            found.candidate,
            num_samples_differing=differing,
            byte_ranges=_ranges(pair),
        ),
        f"{told} differ",
    )


def _sparse(name: str, pair: SlotPair, values: Sampled | None) -> SlotDifference | None:
    if values is None or _num_differing(pair) != 0:
        return None
    found = _plain(name, DifferenceClass.SPARSE_OR_BELOW_SAMPLING, pair)
    return SlotDifference(
        found.slot,
        found.difference_class,
        found.baseline,
        found.candidate,
        num_samples_differing=0,
        byte_ranges=_ranges(pair),
        note="no sampled element differs: few elements do",
    )


def _values(name: str, pair: SlotPair, values: Sampled | None) -> SlotDifference:
    found = _plain(name, DifferenceClass.VALUES, pair)
    return found if values is None else _sized(found, pair, values)


_FLOATS = frozenset({Component.FLOAT64, Component.FLOAT32, Component.FLOAT16, Component.BFLOAT16})
_RULES: tuple[Rule, ...] = (
    _non_finite,
    _other_order,
    _same_values,
    _signs,
    _scale,
    _narrower,
    _discrete,
    _sparse,
)


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
