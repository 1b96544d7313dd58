"""Reads the collectives of one session into those of its groups (CP-25, CA-31)."""

from paritrace.compare.checks_collectives import (
    PENDING_KEPT,
    POINT_TO_POINT,
    WITH_ONE_RESULT,
    Collectives,
    GroupFacts,
    Made,
    Member,
    Pending,
    signature_of,
)
from paritrace.evidence.calls import Call, Completed, Context, Kind, Site
from paritrace.evidence.definition import Definition
from paritrace.evidence.distributed import Collective, CollectiveCounts, Group
from paritrace.evidence.gaps import Gap


class CollectiveRows:
    """Reads one session; `finish` says what never completed and whether its journal is whole."""

    def __init__(self, rank: int, collectives: Collectives) -> None:
        self._rank = rank
        self._collectives = collectives
        self._groups: dict[int, GroupFacts] = {}
        self._group_of_key: dict[str, Group] = {}
        self._kinds: dict[int, Kind] = {}
        self._sites: dict[int, Site] = {}
        self._steps: dict[int, int] = {}  # context -> step
        self._announced: dict[int, Collective] = {}  # call -> what stands before its row
        self._open: dict[int, tuple[GroupFacts, int, Made, tuple[object, ...]]] = {}  # call -> not completed

    def see(self, record: Definition) -> None:
        """Takes a definition or mark."""
        match record:
            case Group():
                if record.ranks:
                    self._groups[record.id] = self._collectives.group(record)
                    self._group_of_key[record.key] = record
                    self._member(self._groups[record.id])
            case Kind():
                self._kinds[record.id] = record
            case Site():
                self._sites[record.id] = record
            case Context():
                self._steps[record.id] = record.step
            case Collective():
                self._announced[record.call] = record
            case CollectiveCounts():
                self._count(record)
            case _:
                pass

    def see_call(self, call: Call) -> None:
        """Takes a call; most are no collectives."""
        record = self._announced.pop(call.id, None)
        facts = self._groups.get(record.group) if record is not None else None
        if record is None or facts is None:
            return
        member = self._member(facts)
        if record.operation in POINT_TO_POINT:
            member.num_point_to_point += 1
            return
        index = record.ordinal - member.num_point_to_point
        inputs = [self._kinds.get(slot.kind) for slot in call.inputs]
        made = Made(signature_of(record, inputs), self._site(call), self._steps.get(call.context, -1))
        facts.see(self._rank, index, made)
        member.count = max(member.count, index + 1)
        self._open[call.id] = (facts, index, made, tuple(slot.kind for slot in call.outputs))

    def see_completed(self, record: Completed) -> None:
        """Takes the row that says that a collective has completed."""
        found = self._open.pop(record.call, None)
        if found is None:
            return
        facts, index, made, outputs = found
        facts.completed.add(index)
        comparable = made.signature.operation in WITH_ONE_RESULT and len(outputs) == len(record.bits)
        if comparable and record.bits and not any(isinstance(bits, Gap) for bits in record.bits):
            facts.see_result(self._rank, index, (*map(self._layout, outputs), *record.bits))

    def finish(self, *, whole: bool) -> None:
        """Takes the end of the session."""
        for facts in self._groups.values():
            self._member(facts).whole = whole
        self._collectives.num_pending[self._rank] = len(self._open)
        for facts, index, made, _ in list(self._open.values())[:PENDING_KEPT]:
            self._collectives.pending.append(Pending(self._rank, facts.key, index, made))

    def _member(self, facts: GroupFacts) -> Member:
        return facts.members.setdefault(self._rank, Member(self._rank, whole=False))

    def _layout(self, kind: object) -> object:
        known = self._kinds.get(kind) if isinstance(kind, int) else None
        return None if known is None else (known.dtype, known.shape, known.strides)

    def _site(self, call: Call) -> str:
        site = self._sites.get(call.workload_site) or self._sites.get(call.site)
        return "" if site is None else f"{site.file}:{site.line}"

    def _count(self, record: CollectiveCounts) -> None:
        for key, number in record.counts.items():
            group = self._group_of_key.get(key)
            if group is not None:
                self._collectives.counts.see(self._rank, ((group.key, group.ranks), record.step), number)
