"""What enters a collective on each of its members, kept of a rank whose calls are let go (CP-8, CP-9)."""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from paritrace.compare.blames import Root
from paritrace.compare.collective_facts import CollectiveFacts
from paritrace.compare.collective_words import sides_of
from paritrace.compare.placing import Placed
from paritrace.compare.ranks import RankComparison
from paritrace.compare.result import Group
from paritrace.compare.translate import Side

FROM_ROOT = frozenset({"broadcast", "scatter"})
SEND = "send"
MAX_STRETCHES = 500

Key = tuple[Hashable, ...]
"""A collective as all its members spell it: its group, and its number there on the sides that have it."""


class Enters(StrEnum):
    """Whether what a member gives to a collective agrees between the two runs."""

    AGREES = "agrees"
    DIFFERS = "differs"
    UNSEEN = "unseen"


class Entered(NamedTuple):
    """One member's part; `root` is what a difference goes back to on that rank, where it is known."""

    how: Enters
    root: Root | None = None


class Asked(NamedTuple):
    """A collective behind a statement, and the other ranks whose tensors its result is made of."""

    key: Key
    members: tuple[int, ...]


def entered(of: RankComparison) -> dict[Key, Entered]:
    """What enters every collective of a rank, whether paired or part of a stretch that has no counterpart."""
    found: dict[Key, Entered] = {}
    keys = _keys_of(of)
    looked_into = _looked_into(of, keys)
    for number in (0, 1):
        for i, key in keys[number].items():
            if len(key) == PAIRED and number:
                continue  # told by the baseline's call
            state = _of_pair(of, i) if len(key) == PAIRED else _of_stretch(of, of.regions.of(number, i), looked_into)
            found[key] = state if key not in found else Entered(Enters.UNSEEN)  # two groups that nothing tells apart
    return found


def asked(of: RankComparison, items: Iterable[Placed]) -> dict[Root, tuple[Asked, ...]]:
    """The statements that stand only if other members agree: a result, or a stretch, that a collective goes into."""
    keys = _keys_of(of)
    found: dict[Root, tuple[Asked, ...]] = {}
    for item in items:
        if item.root is None or item.difference.group is not Group.ORIGINATES or item.difference.collective:
            continue
        questions = [
            Asked(keys[number][i], members)
            for number, i in sorted(_behind(of, item.root))
            if i in keys[number] and (members := _givers(sides_of(of)[number].collectives[i], of.rank))
        ]
        if questions:
            found[item.root] = tuple(dict.fromkeys(questions))
    return found


def given_to(of: RankComparison, call: int) -> tuple[Asked, ...]:
    """The paired collectives inside a call of the baseline, and the other ranks that give to them."""
    side, keys = of.sides.baseline, _keys_of(of)[0]
    span = side.calls[call]
    inside = [i for i in keys if span.id < side.calls[i].id and side.calls[i].left <= span.left]
    return tuple(Asked(keys[i], _givers(side.collectives[i], of.rank)) for i in sorted(inside))


def begun(of: RankComparison) -> dict[Key, int]:
    """When each collective of the baseline began, in its sequence numbers."""
    return {key: of.sides.baseline.calls[i].id for i, key in _keys_of(of)[0].items()}


def _behind(of: RankComparison, root: Root) -> Iterable[tuple[int, int]]:
    """The collectives whose result a statement is about: side and index."""
    if root[0] == "call":
        return [(0, root[1])] if root[1] in of.sides.baseline.collectives else []
    return of.regions.border(frozenset((root[1],))).collectives


def _givers(facts: CollectiveFacts, rank: int) -> tuple[int, ...]:
    if facts.peer >= 0:
        return () if facts.operation == SEND else (facts.peer,)
    if facts.operation in FROM_ROOT and facts.root >= 0:
        return () if facts.root == rank else (facts.root,)
    return tuple(member for member in facts.ranks if member != rank)


PAIRED = 3  # channel, the baseline's number, the candidate's


def _keys_of(of: RankComparison) -> tuple[Mapping[int, Key], Mapping[int, Key]]:
    """The keys of the collectives of both sides that more than one rank takes part in, by index."""
    sides = sides_of(of)
    places = [dict(_places(side, of.rank)) for side in sides]
    partners = (of.sides.pairing.partner_a, of.sides.pairing.partner_b)
    found: tuple[dict[int, Key], dict[int, Key]] = ({}, {})
    for number in (0, 1):
        for i, (channel, place) in places[number].items():
            other = places[1 - number].get(partners[number][i])
            if other is not None and other[0] == channel:
                found[number][i] = (channel, *((place, other[1]) if number == 0 else (other[1], place)))
            elif partners[number][i] < 0:
                found[number][i] = ("alone", number, channel, place)
    return found


def _places(side: Side, rank: int) -> Iterator[tuple[int, tuple[Hashable, int]]]:
    """Channel and number in it. Messages between two ranks are counted by direction: both ends see them in order."""
    messages: Counter[Hashable] = Counter()
    for i, facts in side.collectives.items():
        if len(facts.ranks) <= 1:
            continue
        channel: Hashable = (facts.group, facts.ranks)
        if facts.peer < 0:
            yield i, (channel, facts.ordinal)
            continue
        ends = (rank, facts.peer) if facts.operation == SEND else (facts.peer, rank)
        yield i, ((channel, ends), messages[channel, ends])
        messages[channel, ends] += 1


def _of_pair(of: RankComparison, i: int) -> Entered:
    verdict = of.verdicts.verdicts.get(i)
    if verdict is None:
        return Entered(Enters.AGREES)
    if verdict.inputs or verdict.collective:
        blame = of.origins.blames.get(i)
        return Entered(Enters.DIFFERS, None if blame is None else blame.root)
    return Entered(Enters.UNSEEN if verdict.unseen_inputs else Enters.AGREES)


def _looked_into(of: RankComparison, keys: Sequence[Mapping[int, Key]]) -> frozenset[int]:
    """The first stretches with a collective inside: where more stand apart, the two runs share little."""
    alone = ((number, i) for number in (0, 1) for i, key in keys[number].items() if len(key) != PAIRED)
    places = {place for number, i in alone if (place := of.regions.of(number, i)) >= 0}
    return frozenset(sorted(places, key=of.regions.ends_at)[:MAX_STRETCHES])


def _of_stretch(of: RankComparison, place: int, looked_into: frozenset[int]) -> Entered:
    """What flows into the calls without a counterpart around a collective stands for what flows into it."""
    if place not in looked_into:
        return Entered(Enters.UNSEEN)
    border = of.regions.border(frozenset((place,)))
    if border.agrees:
        return Entered(Enters.AGREES)
    if border.differing_call >= 0:
        blame = of.origins.blames.get(border.differing_call)
        return Entered(Enters.DIFFERS, None if blame is None else blame.root)
    return Entered(Enters.UNSEEN if border.differing_name is None else Enters.DIFFERS)
