"""Whatever happens between two reads, a tree that is returned has no stranger and misses nobody who stayed (RS-2)."""

from functools import partial

from hypothesis import given, settings
from hypothesis import strategies as st

from paritrace.process.resources import ResourceObservationUnavailable
from paritrace.process.table import IdentityRule, ProcessRow
from paritrace.process.tree import read_tree
from paritrace.testing.process_tables import INIT, ScriptedTable

HOST = 10
STRANGER = 2
MEMBERS = range(11, 17)
STEPS = 40

Member = tuple[int, int]


class Watched(ScriptedTable):
    """Notes at every read who is below the host, and who is whose child; `begin` when the reading begins."""

    def begin(self) -> None:
        self.stayed: set[Member] = self._below()
        self.edges: set[tuple[Member, Member]] = set()

    def _step(self, call: str, pid: int) -> None:
        super()._step(call, pid)
        rows = {row.pid: row for row in self.rows()}
        self.stayed &= self._below()
        self.edges |= {(name(row), name(rows[row.parent])) for row in rows.values() if row.parent in rows}

    def _below(self) -> set[Member]:
        rows = {row.pid: row for row in self.rows()}
        return {name(row) for row in rows.values() if self._descends(row, rows)}

    def _descends(self, row: ProcessRow, rows: dict[int, ProcessRow]) -> bool:
        while row.pid != HOST:
            if row.parent not in rows:
                return False
            row = rows[row.parent]
        return True


def name(row: ProcessRow) -> Member:
    return row.pid, row.start


def action(table: Watched, kind: str, pid: int, other: int) -> None:
    """One thing that can happen; what is impossible just now does not."""
    lives = {row.pid: row for row in table.rows()}
    if kind == "start" and pid not in lives and other in lives and not lives[other].zombie:
        table.start(pid, other)
    elif kind == "stranger" and pid not in lives:
        table.start(pid, STRANGER)
    elif kind == "exit" and pid in lives and not lives[pid].zombie:
        table.exit(pid)
    elif kind == "wait" and pid in lives and lives[pid].zombie:
        table.wait(pid)
    elif kind == "end" and pid in lives and not lives[pid].zombie:
        table.end(pid)
    elif kind == "reuse" and pid in lives and not lives[pid].zombie and lives[pid].parent != STRANGER:
        table.end(pid)
        table.start(pid, STRANGER)


KINDS = st.sampled_from(["start", "stranger", "exit", "wait", "end", "reuse"])
PARENTS = st.sampled_from([HOST, *MEMBERS])
ACTIONS = st.lists(st.tuples(st.integers(0, STEPS), KINDS, st.sampled_from(MEMBERS), PARENTS), max_size=6)
SHAPES = st.tuples(*(st.sampled_from([HOST, *MEMBERS[:place]]) for place in range(4)))


@settings(max_examples=300, deadline=None)
@given(
    rule=st.sampled_from(IdentityRule),
    lists=st.booleans(),
    adopters=st.just(set[int]()) | st.sets(PARENTS, max_size=3),
    shape=SHAPES,
    actions=ACTIONS,
)
def test_rs2_no_stranger_is_counted_and_nobody_who_stayed_is_missed(
    rule: IdentityRule,
    lists: bool,
    adopters: set[int],
    shape: tuple[int, ...],
    actions: list[tuple[int, str, int, int]],
) -> None:
    table = Watched(rule=rule, lists_children=lists, adopters=adopters)
    for pid, parent in [(INIT, 0), (STRANGER, INIT), (HOST, INIT), *zip(MEMBERS, shape, strict=False)]:
        table.start(pid, parent)
    for number, kind, pid, other in actions:
        table.at(number, partial(action, table, kind, pid, other))
    table.begin()
    try:
        rows = read_tree(table, table.identity(HOST), adopter=HOST if adopters else None)
    except ResourceObservationUnavailable:
        return
    counted = {name(row) for row in rows}
    assert len(counted) == len(rows)
    assert table.stayed <= counted
    strangers = [row for row in rows[1:] if not any((name(row), parent) in table.edges for parent in counted)]
    assert strangers == []
