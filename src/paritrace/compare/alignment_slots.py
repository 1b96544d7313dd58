"""Compares recorded tensors by what a kept comparison holds of them: no workload, no transform (CP-12, CP-14): pure."""

from collections.abc import Sequence
from typing import NamedTuple

from paritrace.compare.alignment import Relation
from paritrace.compare.alignment_facts import CallFacts, SlotFacts
from paritrace.compare.result import Agreement, DifferenceClass, Status
from paritrace.compare.slots import folded_xor
from paritrace.evidence.dtypes import dtype_of
from paritrace.evidence.fingerprints import Scheme
from paritrace.evidence.folds import fold_xors, xor_at_width
from paritrace.evidence.gaps import Gap
from paritrace.evidence.mixing import MASK


class Found(NamedTuple):
    """The agreement of two tensors, with the reason where they are not comparable; facts for a person."""

    agreement: Agreement
    why: str = ""
    facts: tuple[str, ...] = ()


class FoundPair(NamedTuple):
    """What a pair shows: its status, the agreement of each slot by direction and name, and the class of difference."""

    status: Status
    slots: dict[tuple[str, str], Agreement]
    difference_class: DifferenceClass | None


def compare_slots(ours: SlotFacts, theirs: SlotFacts) -> Found:
    """Compare two tensors: dtype and shape before values, bits only where they cover the elements in one order."""
    if ours.semantics != theirs.semantics:
        return Found(Agreement.NOT_COMPARABLE, "semantics")
    if (ours.dtype, ours.shape) != (theirs.dtype, theirs.shape):
        return Found(Agreement.DIFFERENT, facts=(f"{_kind(ours)} against {_kind(theirs)}",))
    elements = _same(ours.elements, theirs.elements, (ours.elements_scheme, theirs.elements_scheme))
    xor = _same_xor(ours, theirs)
    if elements is False or xor is False:
        return Found(Agreement.DIFFERENT, facts=_told(elements, xor))
    if ours.bits is None or theirs.bits is None:
        return Found(Agreement.NOT_COMPARABLE, "not_captured", _told(elements, xor))
    if ours.bits_scheme != theirs.bits_scheme or ours.bits_scheme is None:
        return Found(Agreement.NOT_COMPARABLE, "scheme", _told(elements, xor))
    if not (ours.has_strides and theirs.has_strides) or ours.strides != theirs.strides:
        return Found(Agreement.NOT_COMPARABLE, "memory_order", _told(elements, xor))
    same = ours.bits == theirs.bits
    return Found(Agreement.EQUAL if same else Agreement.DIFFERENT, facts=_told(elements, xor))


def _kind(slot: SlotFacts) -> str:
    return f"{slot.dtype}{list(slot.shape)}"


def _same(ours: str | None, theirs: str | None, schemes: tuple[str | None, str | None]) -> bool | None:
    if ours is None or theirs is None or schemes[0] != schemes[1]:
        return None
    return ours == theirs


def _same_xor(ours: SlotFacts, theirs: SlotFacts) -> bool | None:
    """Captures with other numbers of regions share the XOR of the whole (CP-24)."""
    if not ours.xor or not theirs.xor:
        return None
    return folded_xor("".join(ours.xor)) == folded_xor("".join(theirs.xor))


def _told(elements: bool | None, xor: bool | None) -> tuple[str, ...]:
    told = {True: "agree", False: "differ"}
    facts = ((Scheme.ELEMENTS_U64.value, elements), ("flat-u32-le-v1, folded", xor))
    return tuple(f"{name}: {told[same]}" for name, same in facts if same is not None)


def compare_calls(ours: CallFacts, theirs: CallFacts) -> FoundPair:
    """Compare all tensors that two calls share by name, and their other arguments."""
    slots: dict[tuple[str, str], Agreement] = {}
    classes: list[DifferenceClass] = []
    others = {(slot.direction, slot.name): slot for slot in theirs.slots}
    for slot in ours.slots:
        other = others.get((slot.direction, slot.name))
        found = Found(Agreement.NOT_COMPARABLE) if other is None else compare_slots(slot, other)
        slots[slot.direction, slot.name] = found.agreement
        if found.agreement is Agreement.DIFFERENT and other is not None:
            classes.append(_class(slot, other))
    slots = dict.fromkeys(others, Agreement.NOT_COMPARABLE) | slots
    if ours.scalars is not None and theirs.scalars is not None and ours.scalars != theirs.scalars:
        classes.append(DifferenceClass.SCALARS)
    return FoundPair(_status(slots, classes), slots, classes[0] if classes else None)


def _class(ours: SlotFacts, theirs: SlotFacts) -> DifferenceClass:
    if ours.shape != theirs.shape:
        return DifferenceClass.SHAPE
    return DifferenceClass.DTYPE if ours.dtype != theirs.dtype else DifferenceClass.BITS_ONLY


def _status(slots: dict[tuple[str, str], Agreement], classes: Sequence[DifferenceClass]) -> Status:
    if classes:
        return Status.DIFFERENT
    return Status.OK if Agreement.EQUAL in slots.values() else Status.INCOMPARABLE


def compare_partition(relation: Relation, whole: SlotFacts, parts: Sequence[SlotFacts]) -> Found:
    """Relate parts to a whole by a fold; agreeing sums are consistent and never called equal (A-01, A-02)."""
    if {part.dtype for part in parts} != {whole.dtype}:
        return Found(Agreement.NOT_COMPARABLE, "dtype", (f"{whole.dtype} against {', '.join(p.dtype for p in parts)}",))
    size = sum(part.logical_nbytes for part in parts)
    if size != whole.logical_nbytes:
        return Found(Agreement.NOT_COMPARABLE, "no_partition", (f"{size:,} bytes against {whole.logical_nbytes:,}",))
    by = _by_xor if relation is Relation.XOR_PARTITION else _by_elements
    agrees, told = by(whole, parts)
    if agrees is None:
        return Found(Agreement.NOT_COMPARABLE, "not_captured", (told,))
    return Found(
        Agreement.NOT_COMPARABLE if agrees else Agreement.DIFFERENT, "consistent_only" if agrees else "", (told,)
    )


def _by_xor(whole: SlotFacts, parts: Sequence[SlotFacts]) -> tuple[bool | None, str]:
    """Where parts lie in the whole is not known, so words of narrow dtypes are folded to the element's width (N-08)."""
    if not whole.xor or not all(part.xor for part in parts):
        return None, "flat-u32-le-v1 was not recorded of all"
    folded = fold_xors(
        [folded_xor("".join(part.xor or ())) for part in parts], itemsize=dtype_of(whole.dtype).itemsize, aligned=False
    )
    if isinstance(folded, Gap):
        return None, folded.gap.value
    there = xor_at_width(folded_xor("".join(whole.xor)), folded.width)
    digits = 2 * folded.width
    told = f"flat-u32-le-v1 at {folded.width} bytes: {there:0{digits}x} against {folded.value:0{digits}x}"
    return there == folded.value, told


def _by_elements(whole: SlotFacts, parts: Sequence[SlotFacts]) -> tuple[bool | None, str]:
    schemes = {part.elements_scheme for part in (whole, *parts)}
    values = [part.elements for part in parts]
    if len(schemes) > 1 or whole.elements is None or None in values:
        return None, f"{Scheme.ELEMENTS_U64.value} was not recorded of all"
    total = sum(int(value, 16) for value in values if value is not None) & MASK
    return int(whole.elements, 16) == total, f"{Scheme.ELEMENTS_U64.value}: {whole.elements} against {total:016x}"
