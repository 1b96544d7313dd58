"""Records of what a kept comparison holds of the calls that an alignment map names (CP-14)."""

from collections.abc import Iterable
from typing import NamedTuple

from msgspec import Struct

from paritrace.compare.alignment import AlignmentMap, SlotRef

SIDES = ("baseline", "candidate")


class Wanted(NamedTuple):
    """A call as a map names it; `session` is empty where a rank has one."""

    side: str
    rank: int
    record: int
    session: str


class SlotFacts(Struct, frozen=True):
    """One recorded tensor; None where the artifact does not say."""

    direction: str
    name: str
    dtype: str
    shape: tuple[int, ...]
    logical_nbytes: int
    bits: str | None
    bits_scheme: str | None
    elements: str | None
    elements_scheme: str | None
    xor: tuple[str, ...] | None
    strides: tuple[int, ...] | None = None
    semantics: str | None = None
    has_strides: bool = True  # whether the artifact says how tensors lie in memory at all


class CallFacts(Struct, frozen=True):
    """One call with its pair and its tensors, as the artifact has them."""

    side: str
    rank: int
    session_id: str
    record_id: int
    step: int
    phase: str
    level: str
    function: str
    module: str
    file: str
    partner: int | None
    basis: str | None
    reason: str | None
    status: str
    reordered: bool
    slots: tuple[SlotFacts, ...]
    scalars: str | None = None

    @property
    def key(self) -> tuple[str, int, int, str]:
        return (self.side, self.rank, self.record_id, self.session_id)

    def slot(self, ref: SlotRef) -> SlotFacts | None:
        return next((s for s in self.slots if (s.direction, s.name) == (ref.direction, ref.slot)), None)


class Known:
    """The calls that a map names, looked up as the map names them."""

    def __init__(self, calls: Iterable[CallFacts]) -> None:
        self._by_id: dict[tuple[str, int, int], list[CallFacts]] = {}
        for call in calls:
            self._by_id.setdefault((call.side, call.rank, call.record_id), []).append(call)

    def found(self, wanted: Wanted) -> list[CallFacts]:
        """All calls that may be meant: none, one, or several where the session is needed."""
        calls = self._by_id.get((wanted.side, wanted.rank, wanted.record), [])
        return [call for call in calls if wanted.session in ("", call.session_id)]

    def call(self, wanted: Wanted) -> CallFacts | None:
        """The one call that is meant, None otherwise."""
        found = self.found(wanted)
        return found[0] if len(found) == 1 else None

    def partner_of(self, call: CallFacts) -> CallFacts | None:
        """The call's present partner, if it is known here."""
        if call.partner is None:
            return None
        other = SIDES[1 - SIDES.index(call.side)]
        found = self._by_id.get((other, call.rank, call.partner), [])
        return next((each for each in found if each.partner == call.record_id), None)


def wanted_by(review: AlignmentMap) -> list[Wanted]:
    """Every call that a map names."""
    found: list[Wanted] = []
    for pair in review.pairs:
        if not isinstance(pair.baseline, str):
            found.append(Wanted("baseline", pair.rank, pair.baseline, pair.baseline_session))
        if not isinstance(pair.candidate, str):
            found.append(Wanted("candidate", pair.rank, pair.candidate, pair.candidate_session))
    for slots in review.slots:
        for side, refs in zip(SIDES, (slots.baseline, slots.candidate), strict=True):
            found += [wanted_slot(side, ref) for ref in refs]
    return found


def wanted_slot(side: str, ref: SlotRef) -> Wanted:
    return Wanted(side, ref.rank, ref.record, ref.session)
