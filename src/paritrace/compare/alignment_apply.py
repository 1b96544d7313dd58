"""What a sound alignment map changes: the new state of every call that it touches (CP-14): pure."""

from typing import NamedTuple

from paritrace.compare.alignment import (
    AlignmentMap,
    Decision,
    PairReview,
    Relation,
    ReviewedPair,
    ReviewedSlots,
    SlotRef,
    SlotReview,
)
from paritrace.compare.alignment_facts import SIDES, CallFacts, Known, SlotFacts, wanted_slot
from paritrace.compare.alignment_problems import PARTITIONS, wanted_of
from paritrace.compare.alignment_slots import Found, FoundPair, compare_calls, compare_partition, compare_slots
from paritrace.compare.result import Agreement, DifferenceClass, Status, Unpaired
from paritrace.compare.rows import Validation

Key = tuple[str, int, int, str]


class Change(NamedTuple):
    """One call as it was and as the review leaves it; `stays`: partner, status and tensors stay as they were."""

    call: CallFacts
    validation: Validation
    stays: bool
    partner: int | None = None
    status: Status = Status.UNALIGNED
    slots: dict[tuple[str, str], Agreement] | None = None
    difference_class: DifferenceClass | None = None

    @property
    def reason(self) -> Unpaired | None:
        """Why it has no partner now; None where it has one, or nothing changes."""
        return Unpaired.REVIEW if not self.stays and self.partner is None else None


class Applied(NamedTuple):
    changes: dict[Key, Change]
    pairs: tuple[ReviewedPair, ...]
    slots: tuple[ReviewedSlots, ...]


def apply(review: AlignmentMap, known: Known) -> Applied:
    """Apply a map that has no problems."""
    changes: dict[Key, Change] = {}
    named = [_named(pair, known) for pair in review.pairs]
    taken = {call.key for calls in named for call in calls}
    told = [
        _decide(pair, calls, known, (changes, taken), review.reason)
        for pair, calls in zip(review.pairs, named, strict=True)
    ]
    return Applied(changes, tuple(told), tuple(_selected(slots, known, review.reason) for slots in review.slots))


def _named(pair: PairReview, known: Known) -> list[CallFacts]:
    wanted = (wanted_of(pair, side) for side in SIDES)
    found = (known.call(each) for each in wanted if each is not None)
    return [call for call in found if call is not None]


def _decide(
    pair: PairReview, calls: list[CallFacts], known: Known, state: tuple[dict[Key, Change], set[Key]], reason: str
) -> ReviewedPair:
    changes, taken = state
    status = calls[0].status
    displaced: list[CallFacts] = []
    match pair.decision:
        case Decision.CONFIRM:
            changes.update({call.key: Change(call, Validation.CONFIRMED, stays=True) for call in calls})
        case Decision.REPLACE:
            found = compare_calls(calls[0], calls[1])
            status = found.status.value
            displaced = [other for call in calls if (other := known.partner_of(call)) and other.key not in taken]
            _pair(calls, found, changes)
        case Decision.REJECT:
            status = Status.UNALIGNED.value
            changes.update({call.key: Change(call, Validation.REJECTED, stays=False) for call in calls})
        case Decision.UNDETERMINED:
            changes.update({call.key: Change(call, Validation.UNDETERMINED, stays=False) for call in calls})
    changes.update({other.key: Change(other, Validation.DISPLACED, stays=False) for other in displaced})
    ids = {call.side: call.record_id for call in calls}
    return ReviewedPair(
        decision=pair.decision,
        rank=pair.rank,
        baseline=ids.get("baseline"),
        candidate=ids.get("candidate"),
        reason=pair.reason.strip() or reason,
        status=status,
        displaced=tuple((other.side, other.record_id) for other in displaced),
    )


def _pair(calls: list[CallFacts], found: FoundPair, changes: dict[Key, Change]) -> None:
    for call, other in zip(calls, reversed(calls), strict=True):
        changes[call.key] = Change(
            call, Validation.REPLACED, False, other.record_id, found.status, found.slots, found.difference_class
        )


def _selected(slots: SlotReview, known: Known, reason: str) -> ReviewedSlots:
    ours, theirs = (
        [_slot(side, ref, known) for ref in refs]
        for side, refs in zip(SIDES, (slots.baseline, slots.candidate), strict=True)
    )
    found = _related(slots.relation, ours, theirs)
    return ReviewedSlots(
        relation=slots.relation,
        baseline=slots.baseline,
        candidate=slots.candidate,
        reason=slots.reason.strip() or reason,
        agreement="undetermined" if found is None else found.agreement.value,
        why="" if found is None else found.why,
        facts=() if found is None else found.facts,
    )


def _slot(side: str, ref: SlotRef, known: Known) -> SlotFacts:
    call = known.call(wanted_slot(side, ref))
    found = None if call is None else call.slot(ref)
    assert found is not None  # a map with an unknown tensor is refused before
    return found


def _related(relation: Relation, ours: list[SlotFacts], theirs: list[SlotFacts]) -> Found | None:
    if relation is Relation.SAME:
        return compare_slots(ours[0], theirs[0])
    if relation in PARTITIONS:
        whole, parts = (ours[0], theirs) if len(ours) == 1 else (theirs[0], ours)
        return compare_partition(relation, whole, parts)
    return None
