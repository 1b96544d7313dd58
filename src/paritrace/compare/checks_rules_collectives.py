"""Invariants of collectives between the members of a group: made alike, completed, with one result (CP-25, CA-31)."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from paritrace.compare.checks_across import Across
from paritrace.compare.checks_collectives import GroupFacts, GroupKey, Made, Member, Mismatch, Pending
from paritrace.compare.checks_result import Evidence, Invariant, Outcome
from paritrace.compare.checks_rules_parameters import NAMES_KEPT
from paritrace.compare.checks_rules_presence import BETWEEN_RANKS, compared_told
from paritrace.compare.checks_sharing import bits_of
from paritrace.compare.checks_telling import ranks_told, sides_told

NONE_RECORDED = "no collective was recorded on two members (level op records each, level digest their number)"


class _Told(NamedTuple):
    """What is said of one group; `fails`: it is a disagreement, else it is left open."""

    step: int
    words: str
    fails: bool


def collective_invariants(across: Across, /) -> Iterator[Invariant]:
    """Yields the invariants of the collectives of every group."""
    yield _match(across)
    yield _completed(across)
    yield _results(across)


def _match(across: Across) -> Invariant:
    identity = "collectives.match"
    groups = across.collectives.groups.values()
    compared = sum(facts.num_compared() for facts in groups)
    counted = _counted(across)
    told = [one for facts in groups for one in _group_told(across, facts)] + list(_counts_told(across))
    wrong = sorted(one for one in told if one.fails)
    open_ones = [one for one in told if not one.fails]
    summary = (
        f"{compared:,} operations and {counted:,} counts of a step; {compared_told(across.presence, _ranks(across))}"
    )
    facts = (*(one.words for one in (*wrong, *open_ones)[:NAMES_KEPT]), summary)
    steps = tuple(dict.fromkeys(one.step for one in wrong if one.step >= 0))[:NAMES_KEPT]
    reason = "" if wrong else open_ones[0].words if open_ones else "" if compared or counted else NONE_RECORDED
    return _invariant(identity, across, facts=facts, steps=steps, total=len(wrong), reason=reason)


def _invariant(
    identity: str, across: Across, *, facts: Sequence[str], steps: tuple[int, ...], total: int, reason: str
) -> Invariant:
    """Returns a failure when there is a total, else what the reason leaves open, else a pass."""
    status = Outcome.FAIL if total else Outcome.NOT_CHECKABLE if reason else Outcome.PASS
    evidence = Evidence(facts=tuple(facts), steps=steps, total=total, reason=reason, ranks=_ranks(across))
    return Invariant(identity, status, -1, steps[0] if steps else -1, BETWEEN_RANKS[identity], evidence)


def _ranks(across: Across) -> tuple[int, ...]:
    members = {rank for facts in across.collectives.groups.values() for rank in facts.members}
    return tuple(sorted(members))


def _group_told(across: Across, facts: GroupFacts) -> Iterator[_Told]:
    mismatch = facts.mismatch()
    if mismatch is not None:
        yield _Told(mismatch.sides[0][1].step, _mismatch_told(facts.key, mismatch), fails=True)
    longest = max((member.count for member in facts.members.values()), default=0)
    for rank in facts.key[1]:
        count = _count(across, facts, rank)
        if count is not None and count < longest and (mismatch is None or mismatch.nth >= count):
            yield _shorter(across, facts, rank=rank, count=count, longest=longest)


def _count(across: Across, facts: GroupFacts, rank: int) -> int | None:
    """Returns how many operations a member made; None when its operators were not recorded, or named otherwise."""
    if not across.levels.with_op >> rank & 1:
        return None
    member = facts.members.get(rank)
    if member is not None:
        return member.count
    ranks = facts.key[1]
    others = across.collectives.groups.values()
    return None if any(rank in other.members for other in others if other.key[1] == ranks) else 0


def _shorter(across: Across, facts: GroupFacts, *, rank: int, count: int, longest: int) -> _Told:
    member = facts.members.get(rank, Member(rank, whole=rank not in across.presence.cut))
    made = facts.made.get(count)
    first = "" if made is None else f", the first missing being {_operation(made, count)}"
    told = f"{_group(facts.key)}: rank {rank} made {count:,} of {longest:,} operations{first}"
    if not member.whole:
        return _Told(_step(made), f"{told}; its journal was cut off", fails=False)
    if across.levels.changed:
        return _Told(_step(made), f"{told}; the captured levels changed on the way", fails=False)
    return _Told(_step(made), told, fails=True)


def _mismatch_told(key: GroupKey, mismatch: Mismatch) -> str:
    sides = "; ".join(f"{ranks_told(ranks)}: {_made_told(made)}" for ranks, made in mismatch.sides)
    return f"{_group(key)}, operation {mismatch.nth}: {sides}"


def _group(key: GroupKey) -> str:
    name, ranks = key
    spelt = "ranks " + ",".join(map(str, ranks))
    return f"group {name}" if name in ("world", spelt) else f"group {name} ({ranks_told(ranks)})"


def _made_told(made: Made) -> str:
    signature = made.signature
    tensors = ", ".join(f"{dtype}[{','.join(map(str, shape))}]" for dtype, shape in signature.tensors[:2])
    root = f" from rank {signature.root}" if signature.root >= 0 else ""
    holds = f" of the gradients of {', '.join(signature.parameters[:3])}" if signature.parameters else ""
    return " ".join(filter(None, (signature.operation, signature.reduce, tensors))) + root + holds + _at(made)


def _at(made: Made) -> str:
    return f" at {made.site}" if made.site else ""


def _operation(made: Made, index: int) -> str:
    return f"{made.signature.operation} {index}{_at(made)}"


def _step(made: Made | None) -> int:
    return -1 if made is None else made.step


def _counted(across: Across) -> int:
    counts = across.collectives.counts
    return sum(len(_showed(across, key)) > 1 for key in counts)


def _showed(across: Across, key: tuple[GroupKey, int]) -> list[int]:
    sides = across.collectives.counts.sides(key, among=bits_of(key[0][1]))
    return [rank for side in sides for rank in side]


def _counts_told(across: Across) -> Iterator[_Told]:
    """Yields the first step of each group in which its members made unlike numbers of operations."""
    first: dict[GroupKey, int] = {}
    for group, step in across.collectives.counts:
        sides = across.collectives.counts.sides((group, step), among=bits_of(group[1]))
        facts = across.collectives.groups[group]
        if len(sides) > 1 and not any(member.num_point_to_point for member in facts.members.values()):
            first[group] = min(step, first.get(group, step))
    for group, step in first.items():
        values = across.collectives.counts.values((group, step), among=bits_of(group[1]))
        told = "; ".join(f"{ranks_told(ranks)} made {number:,}" for ranks, number in values.items())
        yield _Told(step, f"{_group(group)} in step {step}: {told}", fails=True)


def _completed(across: Across) -> Invariant:
    identity = "collectives.completed"
    facts_of = across.collectives.groups
    made = sum(member.count for facts in facts_of.values() for member in facts.members.values())
    pending = across.collectives.pending
    wrong = [one for one in pending if _is_wrong(across, one)]
    total = sum(across.collectives.num_pending.values())
    facts = [_pending_told(across, one) for one in (wrong or pending)[:NAMES_KEPT]]
    facts.append(f"{total:,} of {made:,} recorded operations were not seen to complete")
    reason = "" if made else "no collective was recorded (level op records each)"
    if total and not wrong:
        reason = f"{total:,} of {made:,} collectives were seen to complete on no member"
    steps = tuple(dict.fromkeys(one.made.step for one in wrong if one.made.step >= 0))[:NAMES_KEPT]
    return _invariant(identity, across, facts=facts, steps=steps, total=len(wrong), reason=reason)


def _is_wrong(across: Across, pending: Pending) -> bool:
    """Says whether more is known than that nobody saw it complete: another member did, or this one was cut off."""
    facts = across.collectives.groups[pending.group]
    return pending.nth in facts.completed or not facts.members[pending.rank].whole


def _pending_told(across: Across, pending: Pending) -> str:
    facts = across.collectives.groups[pending.group]
    told = f"rank {pending.rank} was not seen to complete {_operation(pending.made, pending.nth)} of"
    others = "; another member was" if pending.nth in facts.completed else ""
    cut = "" if facts.members[pending.rank].whole else "; its journal was cut off"
    return f"{told} {_group(pending.group)}{others}{cut}"


def _results(across: Across) -> Invariant:
    identity = "collectives.results"
    groups = across.collectives.groups.values()
    compared = sum(facts.num_results for facts in groups)
    found = [(facts, unlike) for facts in groups if (unlike := facts.unlike_result()) is not None]
    told = [
        f"{_group(facts.key)}: {_operation(unlike.made, unlike.nth)} gave unlike results: {sides_told(unlike.sides)}"
        for facts, unlike in sorted(found, key=lambda pair: (pair[1].made.step, pair[0].key))
    ]
    steps = tuple(sorted({unlike.made.step for _, unlike in found if unlike.made.step >= 0}))[:NAMES_KEPT]
    told.append(f"{compared:,} results compared; {compared_told(across.presence, _ranks(across))}")
    reason = "" if compared else "no result of a collective was recorded on two members (level op records them)"
    return _invariant(identity, across, facts=told, steps=steps, total=len(found), reason=reason)
