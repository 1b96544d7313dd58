"""Everything that is wrong with an alignment map, seen against what its artifact holds (CP-14): pure."""

from collections import Counter
from collections.abc import Iterator

from paritrace.compare.alignment import NOBODY, AlignmentMap, Decision, PairReview, Relation, SlotRef, SlotReview
from paritrace.compare.alignment_facts import SIDES, CallFacts, Known, Wanted, wanted_slot
from paritrace.compare.alignment_file import ReadMap

PARTITIONS = frozenset({Relation.XOR_PARTITION, Relation.ELEMENTS_PARTITION})


def problems_with(read: ReadMap, known: Known, *, artifact_sha256: str) -> Iterator[str]:
    """The problems of the file, then those of each entry; nothing is applied unless there are none."""
    yield from read.problems
    review = read.review
    if review is None:
        return
    if review.artifact_sha256 and review.artifact_sha256 != artifact_sha256:
        yield f"artifact_sha256: the map is of another artifact; this one is {artifact_sha256}"
    if not review.reviewer.strip() and not any(line.startswith("reviewer") for line in read.problems):
        yield "reviewer: nobody is named"
    for number, pair in zip(read.numbers[0], review.pairs, strict=True):
        yield from (f"pairs[{number}]: {told}" for told in _pair(pair, known))
        if not pair.reason.strip() and not review.reason.strip():
            yield f"pairs[{number}]: no reason is given"
    yield from _twice(review, read.numbers[0])
    for number, slots in zip(read.numbers[1], review.slots, strict=True):
        yield from (f"slots[{number}]: {told}" for told in _slots(slots, known))
        if not slots.reason.strip() and not review.reason.strip():
            yield f"slots[{number}]: no reason is given"


def wanted_of(pair: PairReview, side: str) -> Wanted | None:
    """The call that a decision names on one side; None for nobody."""
    record = pair.baseline if side == "baseline" else pair.candidate
    session = pair.baseline_session if side == "baseline" else pair.candidate_session
    return None if isinstance(record, str) else Wanted(side, pair.rank, record, session)


def _pair(pair: PairReview, known: Known) -> Iterator[str]:
    named = [wanted for side in SIDES if (wanted := wanted_of(pair, side)) is not None]
    wanted_number = 1 if pair.decision is Decision.UNDETERMINED else 2
    if len(named) != wanted_number:
        ids = "one record id and one" if wanted_number == 1 else "two record ids, and no"
        yield f"`{pair.decision.value}` takes {ids} {NOBODY!r}"
        return
    missing = [told for wanted in named for told in _missing(wanted, known)]
    yield from missing
    if not missing:
        calls = [call for wanted in named if (call := known.call(wanted)) is not None]
        yield from _against(pair.decision, calls)


def _missing(wanted: Wanted, known: Known) -> Iterator[str]:
    found = known.found(wanted)
    if not found:
        session = f" in session {wanted.session}" if wanted.session else ""
        yield f"the {wanted.side} has no call {wanted.record} on rank {wanted.rank}{session}"
    elif len(found) > 1:
        sessions = ", ".join(call.session_id for call in found)
        yield f"{wanted.side} {wanted.record} stands in several sessions of rank {wanted.rank}: name one of {sessions}"


def _against(decision: Decision, calls: list[CallFacts]) -> Iterator[str]:
    """What the artifact says against a decision."""
    first, last = calls[0], calls[-1]
    paired = first.partner == last.record_id and last.partner == first.record_id
    match decision:
        case Decision.CONFIRM | Decision.REJECT if not paired:
            yield f"the artifact does not pair {first.record_id} with {last.record_id}: {_state(first)}; {_state(last)}"
        case Decision.REPLACE if paired:
            yield f"{first.record_id} and {last.record_id} are a pair already: confirm it"
        case Decision.REPLACE if first.level != last.level:
            yield f"{first.record_id} is of level {first.level} and {last.record_id} of level {last.level}"
        case Decision.UNDETERMINED if first.partner is not None:
            yield f"{_state(first)}: reject that pair"
        case _:
            pass


def _state(call: CallFacts) -> str:
    if call.partner is None:
        return f"{call.side} {call.record_id} has no partner"
    other = SIDES[1 - SIDES.index(call.side)]
    return f"{call.side} {call.record_id} is paired with {other} {call.partner}"


def _twice(review: AlignmentMap, numbers: tuple[int, ...]) -> Iterator[str]:
    """Calls that several decisions name."""
    named = [
        (wanted, number)
        for number, pair in zip(numbers, review.pairs, strict=True)
        for side in SIDES
        if (wanted := wanted_of(pair, side)) is not None
    ]
    counts = Counter(wanted for wanted, _ in named)
    for wanted, count in counts.items():
        if count > 1:
            places = ", ".join(f"pairs[{number}]" for each, number in named if each == wanted)
            yield f"{wanted.side} {wanted.record} on rank {wanted.rank} is decided {count} times: {places}"


def _slots(slots: SlotReview, known: Known) -> Iterator[str]:
    sizes = (len(slots.baseline), len(slots.candidate))
    if slots.relation is Relation.SAME and sizes != (1, 1):
        yield f"`same` compares one tensor with one, here are {sizes[0]} and {sizes[1]}"
    elif slots.relation in PARTITIONS and not (min(sizes) == 1 and max(sizes) > 1):
        yield f"`{slots.relation.value}` takes one whole and two or more parts, here are {sizes[0]} and {sizes[1]}"
    elif slots.relation is Relation.UNDETERMINED and not any(sizes):
        yield "`undetermined` names at least one tensor"
    for side, refs in zip(SIDES, (slots.baseline, slots.candidate), strict=True):
        yield from (f"{side} {ref} is named twice" for ref, count in Counter(refs).items() if count > 1)
        for ref in dict.fromkeys(refs):
            yield from _ref(side, ref, known)


def _ref(side: str, ref: SlotRef, known: Known) -> Iterator[str]:
    wanted = wanted_slot(side, ref)
    missing = list(_missing(wanted, known))
    yield from missing
    call = known.call(wanted)
    if not missing and call is not None and call.slot(ref) is None:
        names = ", ".join(f"{slot.direction}:{slot.name}" for slot in call.slots) or "none"
        yield f"{side} {ref}: there is no such tensor; recorded are {names}"
