"""Which recorded fields of each paired call agree: the fast pass over all pairs (CP-7)."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from paritrace.compare.collective_fields import Both, packed_otherwise, plainly_alike, unlike, waits_otherwise
from paritrace.compare.folds_apart import Apart, limited
from paritrace.compare.lookups import Numbers, distinct
from paritrace.compare.result import Agreement, Status
from paritrace.compare.slot_pairs import Pattern, Unequal, unequal
from paritrace.compare.slots import Incomparable, Judged, SlotPair, judge
from paritrace.compare.translate import Side
from paritrace.compare.verdicts import Verdict, Verdicts
from paritrace.correspondence.dataflow import Homes
from paritrace.correspondence.pairing import Pairing
from paritrace.evidence.gaps import CaptureGap, Gap


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """Two translated sessions and what holds between them."""

    baseline: Side
    candidate: Side
    pairing: Pairing
    homes: Homes
    same_scheme: bool
    apart: Apart = Apart.NO  # how far the two runs are laid out otherwise

    def paired_contexts(self) -> list[int]:
        """The baseline's contexts with a call that is paired."""
        paired = np.asarray(self.pairing.partner_a) >= 0
        found: list[int] = distinct(self.baseline.calls.column("context")[paired]).tolist()
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreements:
    """The verdicts of pairs that are not plainly equal; all other pairs are `ok`."""

    verdicts: Verdicts

    def status(self, i: int) -> Status:
        """The status of a paired call."""
        verdict = self.verdicts.get(i)
        return Status.OK if verdict is None else status_of(verdict)

    def statuses(self) -> Counter[Status]:
        """How many pairs with a verdict have which status."""
        counts: list[int] = np.bincount(self.verdicts.codes, minlength=len(self.verdicts.kinds) + 1)[1:].tolist()
        found = Counter[Status]()
        for verdict, count in zip(self.verdicts.kinds, counts, strict=True):
            found[status_of(verdict)] += count
        return found


def status_of(verdict: Verdict) -> Status:
    """The status of a pair with this verdict."""
    if verdict.differs:
        return Status.DIFFERENT
    return Status.OK if verdict.compared else Status.INCOMPARABLE


def agreements(sides: Sides) -> Agreements:
    """Judge every pair; equal facts without gaps need no second look."""
    ours, theirs = sides.baseline, sides.candidate
    partners = np.asarray(sides.pairing.partner_a)
    first = np.flatnonzero(partners >= 0)
    tagged = ours.recorded.tagged or theirs.recorded.tagged
    special = np.isin(first, list(ours.collectives)) if sides.same_scheme and not tagged else np.ones(len(first), bool)
    verdicts = Verdicts(len(partners))
    for block in unequal(ours.words, theirs.words, pairs=(first, partners[first]), also=special):
        simple = bits_decide(sides, block)
        patterns, which = block.patterns(simple)
        codes = np.array([verdicts.code(_by_bits(pattern)) for pattern in patterns], np.int32)
        verdicts.codes[block.first[simple]] = codes[which]
        rest = (block.first[~simple], block.second[~simple], block.equal[~simple])
        for i, j, equal in zip(*(column.tolist() for column in rest), strict=True):
            known = equal and sides.same_scheme and not tagged and i in ours.collectives
            if not (known and plainly_alike(_collectives(sides, i, j))):
                verdicts[i] = _verdict(sides, i, j)
    return Agreements(verdicts=verdicts)


def bits_decide(sides: Sides, block: Unequal) -> Numbers:
    """The pairs of a block of which bits alone decide, slot by slot in place."""
    tagged = sides.baseline.recorded.tagged or sides.candidate.recorded.tagged
    if tagged or not sides.same_scheme or sides.apart is not Apart.NO:
        return np.zeros_like(block.plain)
    found: Numbers = block.plain & ~np.isin(block.first, list(sides.baseline.collectives))
    return found


def _by_bits(pattern: Pattern) -> Verdict:
    """The verdict where bits alone decide, which is nearly always; one record for all pairs that differ alike."""
    return Verdict(
        inputs=pattern.of_inputs(pattern.places),
        outputs=pattern.of_outputs(pattern.places),
        scalars=pattern.scalars,
        compared=pattern.inputs + pattern.outputs - pattern.unseen.bit_count(),
        unseen_inputs=pattern.of_inputs(pattern.unseen),
        unseen_outputs=pattern.of_outputs(pattern.unseen),
    )


def _collectives(sides: Sides, i: int, j: int) -> Both:
    """What is known of a pair as collectives."""
    return sides.baseline.collectives.get(i), sides.candidate.collectives.get(j)


def _verdict(sides: Sides, i: int, j: int) -> Verdict:
    inputs = list(judged_slots(sides, i, j, direction="i"))
    outputs = list(judged_slots(sides, i, j, direction="o"))
    ours, theirs = sides.baseline, sides.candidate
    both = _collectives(sides, i, j)
    others = ours.scalar_facts[ours.calls[i].scalars] != theirs.scalar_facts[theirs.calls[j].scalars]
    if sides.apart is not Apart.NO:  # sizes among the arguments and the collectives belong to the layout
        others, both = others and sides.apart is Apart.STATES, (None, None)
    return Verdict(
        inputs=_places(inputs),
        outputs=_places(outputs),
        scalars=others or waits_otherwise(both),
        compared=sum(not _unseen(found) for found in (*inputs, *outputs)),
        unseen_inputs=tuple(found.place_a for found in inputs if _unseen(found)),
        unseen_outputs=tuple(found.place_a for found in outputs if _unseen(found)),
        collective=unlike(both),
    )


class JudgedSlot(NamedTuple):
    """One slot of a pair: its places on both sides (-1: not there) and what was judged."""

    place_a: int
    place_b: int
    judged: Judged
    pair: SlotPair | None


def judged_slots(sides: Sides, i: int, j: int, *, direction: str) -> Iterator[JudgedSlot]:
    """Judge the slots of one direction, matched by name."""
    ours, theirs = sides.baseline, sides.candidate
    packed = i in ours.collectives and packed_otherwise(_collectives(sides, i, j))
    mine, other_call = ours.calls[i], theirs.calls[j]
    left = mine.inputs if direction == "i" else mine.outputs
    right = other_call.inputs if direction == "i" else other_call.outputs
    places = {theirs.recorded.names[slot.name]: place for place, slot in enumerate(right)}
    for place, slot in enumerate(left):
        other = places.pop(ours.recorded.names[slot.name], None)
        if other is None:
            yield JudgedSlot(place, -1, Judged(Agreement.NOT_COMPARABLE, Incomparable.ONE_SIDE_ONLY), None)
            continue
        pair = SlotPair(
            slot,
            right[other],
            (ours.recorded.kinds[slot.kind], theirs.recorded.kinds[right[other].kind]),
            (
                ours.recorded.details.get((mine.id, direction, place)),
                theirs.recorded.details.get((other_call.id, direction, other)),
            ),
            sides.same_scheme,
            ours.kind_words[slot.kind] == theirs.kind_words[right[other].kind],
        )
        judged = Judged(Agreement.NOT_COMPARABLE, Incomparable.BUCKET_ORDER) if packed else judge(pair)
        yield JudgedSlot(place, other, limited(judged, pair.kinds, apart=sides.apart), pair)
    for other in places.values():
        yield JudgedSlot(-1, other, Judged(Agreement.NOT_COMPARABLE, Incomparable.ONE_SIDE_ONLY), None)


def _places(slots: list[JudgedSlot]) -> tuple[int, ...]:
    return tuple(found.place_a for found in slots if found.judged.agreement is Agreement.DIFFERENT)


def _unseen(found: JudgedSlot) -> bool:
    """Whether a slot's value stayed unseen; bytes that nobody had written have no value to see (CA-35)."""
    if found.judged.agreement is not Agreement.NOT_COMPARABLE:
        return False
    if found.pair is None:
        return True
    bits = (found.pair.baseline.bits, found.pair.candidate.bits)
    return not all(isinstance(b, Gap) and b.gap is CaptureGap.UNINITIALISED for b in bits)
