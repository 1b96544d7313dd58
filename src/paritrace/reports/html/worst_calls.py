"""Chooses the calls that a bounded report shows, in one pass over all of them: a rule in bounded memory (SU-7)."""

from collections.abc import Collection, Iterable

from paritrace.compare.result import Group, Status
from paritrace.compare.rows import CallRow, Correspondence, Side

STARTS = frozenset(
    {Group.ORIGINATES, Group.EXCEEDS, Group.CHOOSES, Group.OUTSIDE, Group.REWIRED, Group.CONTAINS, Group.WITHIN}
)
KINDS = 5  # of `kind_of`
ORDER_IN_WORDS = (
    "first what findings name and what starts a difference, then calls that differ, then those without a partner, then "
    "those that cannot be compared, then those that agree; within each in order of execution"
)


class Chosen:
    """A pair, by its baseline's call, or a call without a partner; with what was entered before and after it."""

    __slots__ = ("after", "before", "partner", "place", "row")

    def __init__(self, row: CallRow, place: int, before: CallRow | None) -> None:
        self.row = row
        self.place = place  # in the order in which rows came
        self.partner: CallRow | None = None  # the candidate's call
        self.before = before
        self.after: CallRow | None = None


class Choice:
    """The `most` entries that say the most, and how many there are in all.

    `named`: (side, rank, record id) of calls that findings name; they come before all others.
    """

    def __init__(self, *, most: int, named: Collection[tuple[str, int, int]] = ()) -> None:
        self.most = most
        self._named = frozenset(named)
        self.total = 0
        self._kinds: list[list[Chosen]] = [[] for _ in range(KINDS)]
        self._pairs: dict[tuple[int, int], Chosen] = {}  # (rank, the baseline's record id): of the session read last
        self._last: CallRow | None = None
        self._waits: Chosen | None = None  # for the call that is entered after it

    @property
    def entries(self) -> list[Chosen]:
        """The chosen ones, in the order in which they are told."""
        return [one for kind in self._kinds for one in kind][: self.most]

    def take(self, rows: Iterable[CallRow], /) -> None:
        """Reads all rows once: of every session the baseline's first, then the candidate's."""
        for row in rows:
            self._see(row)

    def _see(self, row: CallRow) -> None:
        same = self._last is not None and (self._last.side, self._last.session_id) == (row.side, row.session_id)
        if self._waits is not None and same:
            self._waits.after = row
        self._waits = None
        if not same and row.side is Side.BASELINE:
            self._pairs.clear()
        if row.side is Side.CANDIDATE and row.correspondence is Correspondence.PAIRED:
            self._join(row)
        else:
            self._count(row, self._last if same else None)
        self._last = row

    def _join(self, row: CallRow) -> None:
        chosen = self._pairs.get((row.rank, row.partner))
        if chosen is not None and chosen.row.partner == row.record_id:
            chosen.partner = row

    def _count(self, row: CallRow, before: CallRow | None) -> None:
        named = (row.side.value, row.rank, row.record_id) in self._named
        kind = 0 if named else kind_of(row)
        self.total += 1
        if sum(map(len, self._kinds[: kind + 1])) >= self.most:
            return
        chosen = self._waits = Chosen(row, self.total, before)
        self._kinds[kind].append(chosen)
        if row.side is Side.BASELINE and row.correspondence is Correspondence.PAIRED:
            self._pairs[row.rank, row.record_id] = chosen
        self._let_go()

    def _let_go(self) -> None:
        """Those that cannot be among the chosen any more: as many others say more."""
        before = 0
        for kind in self._kinds:
            del kind[max(0, self.most - before) :]
            before += len(kind)


def kind_of(row: CallRow, /) -> int:
    """Returns how much a call says, from 0: what starts a difference; the order of `ORDER_IN_WORDS`."""
    if row.group in STARTS:
        return 0
    match row.status:
        case Status.DIFFERENT:
            return 1
        case Status.UNALIGNED:
            return 2
        case Status.INCOMPARABLE:
            return 3
        case Status.OK:
            return 4
