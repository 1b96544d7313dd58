"""Pairs of slots made from arrays, summarised as a capture would."""

import msgspec
import numpy as np

from paritrace.compare.slots import SlotPair
from paritrace.evidence.calls import Detail, Kind, Slot
from paritrace.evidence.fingerprints import strong
from paritrace.evidence.summaries import summarise
from paritrace.testing.tables import Array


def kind_of(array: Array, dtype: str) -> Kind:
    strides = tuple(stride // array.itemsize for stride in array.strides)
    return Kind(0, dtype, array.shape, strides, "strided", "cpu", False, array.size, array.nbytes)


def detail_of(array: Array, dtype: str, *, regions: int = 4, semantics: str | None = None) -> Detail:
    data = np.ascontiguousarray(array)
    found = summarise(data.tobytes(), dtype=dtype, num_elements=data.size, regions=regions)
    return Detail(call=0, side="o", slot=0, semantics=semantics, **msgspec.structs.asdict(found))


def slot_of(array: Array) -> Slot:
    """The strong fingerprint in memory order."""
    order = sorted(range(array.ndim), key=lambda dim: -array.strides[dim])
    covered = np.ascontiguousarray(array.transpose(order))
    return Slot(0, 0, f"{strong(covered.tobytes()):016x}")


def pair(
    a: Array,
    b: Array,
    *,
    dtypes: tuple[str, str] | None = None,
    same_scheme: bool = True,
    semantics: tuple[str | None, str | None] = (None, None),
    details: bool = True,
) -> SlotPair:
    """Two slots with full summaries; `dtypes` by torch name where NumPy has another one."""
    names = dtypes or (str(a.dtype), str(b.dtype))
    return SlotPair(
        slot_of(a),
        slot_of(b),
        (kind_of(a, names[0]), kind_of(b, names[1])),
        (
            detail_of(a, names[0], semantics=semantics[0]) if details else None,
            detail_of(b, names[1], semantics=semantics[1]) if details else None,
        ),
        same_scheme,
    )
