"""A comparison with the element-wise figures of every slot it shows that both runs keep whole (CP-11)."""

from msgspec.structs import replace

from paritrace.compare.kept_slots import NOTHING, KeptSlots, Where
from paritrace.compare.result import Comparison, Difference, DifferenceClass, SlotDifference


def with_elements(result: Comparison, kept: KeptSlots) -> Comparison:
    """The comparison with figures beside each slot of a place; unchanged where a run keeps no tensors."""
    if not kept.any:
        return result
    first = result.first_difference
    return replace(
        result,
        findings=tuple(replace(finding, place=_place(finding.place, kept)) for finding in result.findings),
        origins=tuple(_place(place, kept) for place in result.origins),
        first_difference=None if first is None else _place(first, kept),
        first_by_rank=tuple(_place(place, kept) for place in result.first_by_rank),
    )


def _place(place: Difference, kept: KeptSlots) -> Difference:
    """A stretch of unpaired calls has no pair of calls whose slots could be meant."""
    if place.region or place.baseline_record_id < 0 or place.candidate_record_id < 0:
        return place
    return replace(place, slots=tuple(_slot(slot, place, kept) for slot in place.slots))


def _slot(slot: SlotDifference, place: Difference, kept: KeptSlots) -> SlotDifference:
    if slot.difference_class is DifferenceClass.SCALARS:
        return slot
    calls = (place.baseline_record_id, place.candidate_record_id)
    told = kept.told(Where(place.rank, calls, "", slot.slot, place.module))
    return slot if told == NOTHING else replace(slot, elements=told.figures, elements_why=told.why)
