"""Finds where a dtype narrows: declared by the dtypes of a call, or hidden in float32 values that fit bfloat16."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence

from msgspec import Struct

from paritrace.evidence.calls import Call, Counts, Detail, Kind

BITS = {"float64": 64, "float32": 32, "bfloat16": 16, "float16": 16} | dict.fromkeys(
    ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"), 8
)
PLACES_KEPT = 10_000  # distinct (function, site, dtypes); a model has hundreds
MIN_ELEMENTS = 64  # fewer elements may all fit bfloat16 by chance or design
MIN_DISTINCT = 16  # distinct sampled values; masks, signs and one-hot codes have few
SAMPLE_DIGITS = 8  # hex digits of a sampled float32


class Narrowing(Struct, frozen=True):
    """Calls of one function at one site that take floats and give narrower ones."""

    first: Call
    wide: str
    narrow: str
    count: int


class HiddenNarrowing(Struct, frozen=True):
    """A call whose float32 result fits bfloat16 throughout, while an input does not and no narrower dtype was seen."""

    call: Call
    slot: int
    num_elements: int


class Narrowings:
    """`declared` by place; `hidden` is the first, `num_hidden` how many."""

    def __init__(self) -> None:
        self.declared: dict[tuple[int, int, str, str], Narrowing] = {}
        self.places_left_out = 0
        self.slots_read = 0
        self.hidden: HiddenNarrowing | None = None
        self.num_hidden = 0
        self._dtypes: dict[tuple[tuple[int, ...], tuple[int, ...]], _Dtypes] = {}  # by the kinds of a call's slots
        self._ids_of_step: list[int] = []  # ascending: calls are written as they leave

    def forget(self) -> None:
        """A step has ended: no later call encloses one of it."""
        self._ids_of_step.clear()

    def see(self, call: Call, details: Sequence[Detail], kinds: Mapping[int, Kind]) -> None:
        """Takes a call with the summaries of its slots."""
        signature = (tuple([slot.kind for slot in call.inputs]), tuple([slot.kind for slot in call.outputs]))
        dtypes = self._dtypes.get(signature)
        if dtypes is None:
            dtypes = self._dtypes[signature] = _dtypes_of(signature, kinds)
        if dtypes.has_narrow:
            self._ids_of_step.append(call.id)
        if dtypes.narrows:
            self._see_declared(call, wide=dtypes.wide, narrow=dtypes.narrow)
        if details and dtypes.only_float32:
            self._see_hidden(call, details, kinds)

    def _see_declared(self, call: Call, *, wide: str, narrow: str) -> None:
        key = (call.function, call.site, wide, narrow)
        known = self.declared.get(key)
        if known is None and len(self.declared) >= PLACES_KEPT:
            self.places_left_out += 1
            return
        self.declared[key] = Narrowing(
            first=known.first if known else call, wide=wide, narrow=narrow, count=known.count + 1 if known else 1
        )

    def _see_hidden(self, call: Call, details: Sequence[Detail], kinds: Mapping[int, Kind]) -> None:
        judged = [detail for detail in details if detail.counts is not None]
        self.slots_read += len(judged)
        wide_inputs = [d for d in judged if d.side == "i" and not _fits_bfloat16(d, _kind(call, d, kinds))]
        results = [d for d in judged if d.side == "o" and _went_through(d, _kind(call, d, kinds))]
        if not wide_inputs or not results or self._narrow_inside(call):
            return
        self.num_hidden += 1
        if self.hidden is None:
            kind = _kind(call, results[0], kinds)
            self.hidden = HiddenNarrowing(call, results[0].slot, kind.num_elements if kind else 0)

    def _narrow_inside(self, call: Call) -> bool:
        """Says whether a recorded call inside this one carried a narrower float: then the narrowing is declared."""
        ids = sorted(self._ids_of_step)
        position = bisect_right(ids, call.id)
        return position < len(ids) and ids[position] < call.left


class _Dtypes(Struct, frozen=True):
    """What the floating dtypes of a call say: `wide` is the narrowest input, `narrow` the narrowest output."""

    has_narrow: bool
    narrows: bool
    only_float32: bool
    wide: str
    narrow: str


def _dtypes_of(signature: tuple[tuple[int, ...], tuple[int, ...]], kinds: Mapping[int, Kind]) -> _Dtypes:
    inputs, outputs = (_floats(ids, kinds) for ids in signature)
    wide = min(inputs, key=BITS.__getitem__, default="")
    narrow = min(outputs, key=BITS.__getitem__, default="")
    return _Dtypes(
        has_narrow=any(BITS[dtype] < 32 for dtype in (*inputs, *outputs)),
        narrows=bool(inputs and outputs) and BITS[narrow] < BITS[wide],
        only_float32=bool(inputs) and set(inputs) == set(outputs) == {"float32"},
        wide=wide,
        narrow=narrow,
    )


def _floats(ids: tuple[int, ...], kinds: Mapping[int, Kind]) -> list[str]:
    dtypes = [kinds[identity].dtype for identity in ids if identity in kinds]
    return [dtype for dtype in dtypes if dtype in BITS]


def _kind(call: Call, detail: Detail, kinds: Mapping[int, Kind]) -> Kind | None:
    slots = call.inputs if detail.side == "i" else call.outputs
    return kinds.get(slots[detail.slot].kind) if detail.slot < len(slots) else None


def _fits_bfloat16(detail: Detail, kind: Kind | None) -> bool:
    if kind is None or kind.dtype != "float32" or detail.counts is None:
        return True
    return detail.counts.low_bits_zero >= kind.num_elements  # NaN and infinities are counted by their bits as well


def _finite(counts: Counts, kind: Kind) -> int:
    return kind.num_elements - counts.nan - counts.positive_infinity - counts.negative_infinity


def _went_through(detail: Detail, kind: Kind | None) -> bool:
    if kind is None or detail.counts is None or not _fits_bfloat16(detail, kind):
        return False
    if _finite(detail.counts, kind) < max(MIN_ELEMENTS, kind.num_elements // 2):
        return False  # mostly NaN: nothing is known of where its values went through
    samples = detail.samples
    distinct = {samples[start : start + SAMPLE_DIGITS] for start in range(0, len(samples), SAMPLE_DIGITS)}
    return len(distinct) >= MIN_DISTINCT
