"""Collectives of a group that one side alone runs, other fields of paired ones, another order (CP-2a, CP-21)."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np
from msgspec.structs import replace

from paritrace.compare.collective_evidence import NOT_LOOKED_FOR, is_whole
from paritrace.compare.collective_held import Unsaid
from paritrace.compare.collective_words import (
    SIDES,
    FoundCollective,
    difference_at,
    moment_of,
    sides_of,
    site_of,
    subject,
    told_collective,
    told_names,
    with_steps,
)
from paritrace.compare.describe import pair_difference
from paritrace.compare.ranks import RankComparison
from paritrace.compare.result import CollectiveDifference, CollectiveKind, Group
from paritrace.compare.translate import Side


def one_sided(of: RankComparison) -> list[FoundCollective]:
    """Collectives without a counterpart in a group that runs more of that operation on their side, told once each.

    Where both sides have equally many without a counterpart nothing is said: they may be each other's. Buckets are left
    to `reductions`, which knows what they hold.
    """
    unsaid = Unsaid(of)
    left = (_unpaired(of, 0, unsaid), _unpaired(of, 1, unsaid))
    found: dict[Hashable, FoundCollective] = {}
    for number in (0, 1):
        for kind, items in left[number].items():
            if len(items) > len(left[1 - number].get(kind, ())):
                for key, told in _told_by_site(of, number, items):
                    found[key] = with_steps(found[key], told.told.steps) if key in found else told
    return list(found.values())


def _unpaired(of: RankComparison, number: int, unsaid: Unsaid) -> dict[Hashable, list[int]]:
    """The unpaired collectives of one side by stream (group, step, phase) and operation."""
    side, reasons = sides_of(of)[number], of.reasons[number]
    found: dict[Hashable, list[int]] = defaultdict(list)
    for i, facts in side.collectives.items():
        if (
            i in reasons
            and reasons[i] not in NOT_LOOKED_FOR
            and not _left_to_reductions(sides_of(of)[number], i, unsaid)
        ):
            found[side.records.streams[i], facts.operation].append(i)
    return found


def _left_to_reductions(side: Side, i: int, unsaid: Unsaid) -> bool:
    """Whether it says what it holds, where no other collective without a counterpart may hold the same unsaid."""
    facts = side.collectives[i]
    if not facts.parameters:
        return False
    step, _, _ = side.context_of(i)
    return not any(unsaid.may_hold(number, facts.parameters, step=step, group=facts.group) for number in (0, 1))


def _told_by_site(of: RankComparison, number: int, items: Sequence[int]) -> Iterator[tuple[Hashable, FoundCollective]]:
    side = sides_of(of)[number]
    sites: dict[Hashable, list[int]] = defaultdict(list)
    for i in items:
        sites[number, side.collectives[i].group, side.records.keys[i], side.module_of(i)].append(i)
    for key, members in sites.items():
        yield (key, len(members)), _one_sided(of, number, members)


def _one_sided(of: RankComparison, number: int, items: Sequence[int]) -> FoundCollective:
    side, first = sides_of(of)[number], items[0]
    facts = side.collectives[first]
    whole = is_whole(of)
    places = (first, -1) if number == 0 else (-1, first)
    told = told_collective(side, first)
    sentence = _sentence(of, number, items, whole=whole)
    belongs = (of.stretches.of_a, of.stretches.of_b)[number]
    return FoundCollective(
        moment=moment_of(of, number, first),
        told=CollectiveDifference(
            kind=CollectiveKind.ONE_SIDED,
            sentence=sentence,
            ranks=(of.rank,),
            steps=(side.context_of(first)[0],),
            phase=side.context_of(first)[2],
            group=facts.group,
            operation=facts.operation,
            parameters=(),
            baseline=told if number == 0 else "",
            candidate=told if number == 1 else "",
            records=tuple(_record(of, number, i) for i in items),
            complete=whole,
        ),
        difference=difference_at(
            of,
            places,
            sentence=sentence,
            cause=_between(of, number, first),
            slot=facts.operation,
        ),
        places=frozenset(belongs[i] for i in items if belongs[i] >= 0),
        calls=frozenset((number, i) for i in items),
    )


def _sentence(of: RankComparison, number: int, items: Sequence[int], *, whole: bool) -> str:
    side, first = sides_of(of)[number], items[0]
    facts = side.collectives[first]
    held = told_names(list(dict.fromkeys(text for i in items if (text := subject(side, i)))))
    site = site_of(side, first)
    many = f"{len(items)} {facts.operation}" if len(items) > 1 else facts.operation
    what = f"{many} of group {facts.group}{f' at {site}' if site else ''}{f' ({held})' if held else ''}"
    step, _, phase = side.context_of(first)
    start = f"Only the {SIDES[number]} runs" if whole else f"Recorded on the {SIDES[number]} only:"
    return f"{start} {what} at step {step}, {phase}"


def _between(of: RankComparison, number: int, i: int) -> str:
    """The paired collectives of its group around it, by number in the group on its own side."""
    side = sides_of(of)[number]
    partners = (of.sides.pairing.partner_a, of.sides.pairing.partner_b)[number]
    group = side.collectives[i].group
    paired = [j for j, facts in side.collectives.items() if facts.group == group and partners[j] >= 0]
    before = max((j for j in paired if j < i), default=None)
    after = min((j for j in paired if j > i), default=None)
    ends = [f"#{side.collectives[j].ordinal}" if j is not None else "an end of the record" for j in (before, after)]
    return f"#{side.collectives[i].ordinal} of its group, between {ends[0]} and {ends[1]}"


def _record(of: RankComparison, number: int, i: int) -> tuple[int, int, int]:
    identity = sides_of(of)[number].calls[i].id
    return (of.rank, identity, -1) if number == 0 else (of.rank, -1, identity)


def other_fields(of: RankComparison) -> Iterator[FoundCollective]:
    """Pairs that ran over another group, or with another reduction, root or peer: the first of each kind."""
    verdicts = of.verdicts.verdicts
    other: list[int] = np.flatnonzero(verdicts.told([kind.collective for kind in verdicts.kinds], bool)).tolist()
    for i in other:
        blame = of.origins.blames.get(i)
        if blame is not None and blame.group is Group.ORIGINATES:
            yield _fields(of, i)


def _fields(of: RankComparison, i: int) -> FoundCollective:
    ours, theirs = sides_of(of)
    j = of.sides.pairing.partner_a[i]
    facts = ours.collectives[i]
    held = told_names(facts.parameters) or subject(ours, i)
    site = site_of(ours, i) or site_of(theirs, j)
    step, _, phase = ours.context_of(i)
    group = f" of group {facts.group}" if facts.group == theirs.collectives[j].group else ""
    sentence = (
        f"{facts.operation} #{facts.ordinal}{group}{f' ({held})' if held else ''}"
        f"{f' at {site}' if site else ''} runs otherwise in the candidate at step {step}, {phase}"
    )
    return FoundCollective(
        moment=moment_of(of, 0, i),
        told=CollectiveDifference(
            kind=CollectiveKind.FIELDS,
            sentence=sentence,
            ranks=(of.rank,),
            steps=(step,),
            phase=phase,
            group=facts.group,
            operation=facts.operation,
            parameters=tuple(sorted(facts.parameters)),
            baseline=told_collective(ours, i),
            candidate=told_collective(theirs, j),
            records=((of.rank, ours.calls[i].id, theirs.calls[j].id),),
        ),
        difference=replace(pair_difference(of, i, of.origins.blames[i]), collective=sentence),
        pairs=frozenset((i,)),
    )


def other_orders(of: RankComparison) -> Iterator[FoundCollective]:
    """Groups whose paired collectives stand in another order on the other side: the first such two of each group."""
    told: set[str] = set()
    for group, items in _by_stream(of):
        partners = of.sides.pairing.partner_a
        crossed = next(((i, k) for i, k in pairwise(items) if partners[i] > partners[k]), None)
        if crossed is not None and group not in told:
            told.add(group)
            yield _order(of, crossed)


def _by_stream(of: RankComparison) -> Iterable[tuple[str, list[int]]]:
    side = of.sides.baseline
    found: dict[Hashable, list[int]] = defaultdict(list)
    for i in side.collectives:
        if of.sides.pairing.partner_a[i] >= 0:
            found[side.records.streams[i]].append(i)
    return ((side.collectives[items[0]].group, items) for items in found.values())


def _order(of: RankComparison, crossed: tuple[int, int]) -> FoundCollective:
    ours, theirs = sides_of(of)
    i, k = crossed
    first, second = ours.collectives[i], ours.collectives[k]
    step, _, phase = ours.context_of(i)
    names = [told_names(facts.parameters) or site_of(ours, at) for at, facts in ((i, first), (k, second))]
    sentence = (
        f"Collectives of group {first.group} run in another order at step {step}, {phase}: in the candidate"
        f" {second.operation} ({names[1]}) before {first.operation} ({names[0]})"
    )
    j = of.sides.pairing.partner_a[i]
    return FoundCollective(
        moment=moment_of(of, 0, i),
        told=CollectiveDifference(
            kind=CollectiveKind.ORDER,
            sentence=sentence,
            ranks=(of.rank,),
            steps=(step,),
            phase=phase,
            group=first.group,
            operation=first.operation,
            parameters=tuple(sorted({*first.parameters, *second.parameters})),
            baseline=told_collective(ours, i),
            candidate=told_collective(theirs, j),
            records=((of.rank, ours.calls[i].id, theirs.calls[j].id),),
        ),
        difference=difference_at(of, (i, j), sentence=sentence, cause="order alone", slot=first.operation),
    )
