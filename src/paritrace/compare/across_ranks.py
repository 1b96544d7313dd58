"""What the statements of single ranks come to once all ranks are known, whatever their order (CP-8, CP-9)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from msgspec import structs

from paritrace.compare.blames import Root
from paritrace.compare.collective_members import Asked, Enters
from paritrace.compare.exits_across import exits_across
from paritrace.compare.placing import UNDECIDED, Placed
from paritrace.compare.rank_summary import RankSummary
from paritrace.compare.result import Group

NOT_COMPARED = "the input of rank {} was not compared"
FOLLOWS = "the input of rank {} differs"
UNTOLD = "the input of rank {} differs, and nothing says where that comes from"

Place = tuple[int, Root]
"""A statement: the number of its rank's summary, and what it speaks of."""


def across_ranks(ranks: Sequence[RankSummary]) -> list[RankSummary]:
    """All summaries without statements that another rank's make untrue.

    What a collective gives back does not originate on a rank while another member's input differs: it follows from what
    that rank says, and is undetermined where that input was not compared. Collectives that one side alone runs and
    behind which nothing differs on any rank are facts of the group, not places where the runs part.
    """
    return exits_across(_without_idle(_Members(ranks).settled()))


class _Members:
    def __init__(self, ranks: Sequence[RankSummary]) -> None:
        self._ranks = ranks
        self._number = {(rank.rank, rank.restarts): number for number, rank in enumerate(ranks)}
        self._causes: dict[Place, Place] = {}  # statement -> what its difference goes back to on another rank
        self._doubts: dict[Place, str] = {}
        self._items = {
            (number, item.root): item for number, rank in enumerate(ranks) for item in rank.items if item.root
        }

    def settled(self) -> list[RankSummary]:
        for number, rank in enumerate(self._ranks):
            for root, questions in rank.asked.items():
                self._ask((number, root), questions)
        ends: dict[Place, Placed] = {}
        for place, (member, _) in self._causes.items():
            end = self._end(place)
            if end is None:
                self._doubts[place] = UNTOLD.format(self._ranks[member].rank)
            else:
                ends[place] = end
        more: Counter[int] = Counter()
        for number, rank in enumerate(self._ranks):
            for item in rank.items:
                cause = self._follows(number, item, ends)
                if cause is not None:
                    more[id(cause)] += 1 + item.consequences
        return [self._rank(number, dropped=ends, more=more) for number in range(len(self._ranks))]

    def _ask(self, place: Place, questions: Sequence[Asked]) -> None:
        """What the other members say of what they gave."""
        rank = self._ranks[place[0]]
        unseen: list[int] = []
        for key, members in questions:
            for member in members:
                number = self._number.get((member, rank.restarts), -1)
                given = self._ranks[number].entered.get(key) if number >= 0 else None
                if given is not None and given.how is Enters.DIFFERS:
                    self._causes.setdefault(place, (number, given.root or NOWHERE))
                elif given is None or given.how is Enters.UNSEEN:
                    unseen.append(member)
        if unseen and place not in self._causes:
            self._doubts[place] = NOT_COMPARED.format(", ".join(str(member) for member in sorted(set(unseen))))

    def _end(self, place: Place) -> Placed | None:
        """The statement that stays and that this one follows from, through those of other ranks that do not stay."""
        seen = {place}
        while (cause := self._causes.get(place)) is not None:
            if cause in seen:
                return None
            seen.add(cause)
            place = cause
        if place in self._items:
            return self._items[place]
        kept = (item for item in self._ranks[place[0]].items if (place[0], item.root) not in self._causes)
        return next(kept, None)

    def _rank(self, number: int, *, dropped: Mapping[Place, Placed], more: Mapping[int, int]) -> RankSummary:
        rank = self._ranks[number]
        items = [
            self._doubted(number, item)._replace(consequences=item.consequences + more[id(item)])
            for item in rank.items
            if self._follows(number, item, dropped) is None
        ]
        follows = [
            _told(item, Group.PROPAGATES, FOLLOWS.format(self._ranks[self._causes[number, item.root][0]].rank))
            for item in rank.items
            if item.root is not None and (number, item.root) in dropped
        ]
        regrouped = {root: Group.PROPAGATES for of, root in dropped if of == number}
        regrouped |= {root: Group.UNDETERMINED for of, root in self._doubts if of == number}
        return replace(rank, items=items, follows=follows, regrouped=regrouped)

    def _follows(self, number: int, item: Placed, ends: Mapping[Place, Placed]) -> Placed | None:
        """What another rank says that a statement follows from: a result, and what is in doubt behind it."""
        if item.root is not None and (number, item.root) in ends:
            return ends[number, item.root]
        if item.difference.group not in UNDECIDED or any(item is end for end in ends.values()):
            return None
        before = [
            (each.moment, end)
            for each in self._ranks[number].items
            if each.root is not None
            and each.moment < item.moment
            and (end := ends.get((number, each.root))) is not None
        ]
        return min(before, key=lambda found: found[0])[1] if before else None

    def _doubted(self, number: int, item: Placed) -> Placed:
        cause = None if item.root is None else self._doubts.get((number, item.root))
        return item if cause is None else _told(item, Group.UNDETERMINED, cause)


def _told(item: Placed, group: Group, cause: str) -> Placed:
    return item._replace(difference=structs.replace(item.difference, group=group, cause=cause))


NOWHERE: Root = ("call", -1)


def _without_idle(ranks: Sequence[RankSummary]) -> list[RankSummary]:
    """Without collectives of one side alone that changed nothing on any rank."""
    working = {
        item.difference.collective
        for rank in ranks
        for item in rank.items
        if item.alone and any(_differs_behind(other, item) for other in ranks)
    }
    return [
        replace(rank, items=[item for item in rank.items if not item.alone or item.difference.collective in working])
        for rank in ranks
    ]


def _differs_behind(rank: RankSummary, item: Placed) -> bool:
    """Whether anything differs on a rank behind a statement; where that rank does not make it, since its step."""
    if rank.last is None:
        return False
    own = next((each for each in rank.items if each.difference.collective == item.difference.collective), None)
    return rank.last.step >= item.moment.step if own is None else rank.last > own.moment
