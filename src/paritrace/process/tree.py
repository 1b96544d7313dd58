"""The rule that reads a process tree out of a table: whole, or not at all (RS-2 to RS-4, RS-9, RS-10).

A process is read before its children. So the CPU time of a child that its parent waits for meanwhile is never counted
twice; where a parent's waited-for time has grown when it is read again, its children are read again from there.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from paritrace.evidence.gaps import Gap, ResourceGap
from paritrace.evidence.ids import ProcessIdentity
from paritrace.process.resources import ResourceObservationUnavailable
from paritrace.process.table import Gone, HiddenTable, IdentityRule, ProcessRow, ProcessTable, Unreadable

MOST_READS = 4
"""Lists, families and trees that change faster than four reads follow are not waited for (RS-3, RS-10)."""

_Read = TypeVar("_Read")
_Seen = tuple[int, int, int, bool]


class _Listed(NamedTuple):
    """Children of one process. `before`: a moment when they had not been listed yet."""

    children: frozenset[int]
    before: int


_Lister = Callable[[int], _Listed | Gone]


class _MemberEndedError(Exception):
    """A process that was listed or counted ended while the tree was read: its children are no longer below it."""


def read_tree(table: ProcessTable, host: ProcessIdentity, *, adopter: int | None = None) -> tuple[ProcessRow, ...]:
    """Read a host and its descendants, the host first and every parent before its children; zombies are in it.

    Most orphans leave the tree. `adopter`: who takes them in, the host itself, or another process for this host alone:
    its children that are not older than the host belong to the tree. Whoever adopts may have been read before it does:
    then two consecutive walks have to agree, as they have to where there are zombies, which may have had children until
    just before they were read. A walk that meets a member's end is done again in any case.

    Raises:
        ResourceObservationUnavailable: Refused: the host has exited or cannot be told from a stranger, a live process
            cannot be read, not every process is listed, or the tree kept changing.
    """
    last: frozenset[_Seen] | None = None
    for _ in range(MOST_READS):
        try:
            rows = _walk(table, _host(table, host), adopter)
        except _MemberEndedError:
            last = None
            continue
        seen = frozenset((row.pid, row.start, row.parent, row.zombie) for row in rows)
        if seen == last or not (adopter is not None or any(row.zombie for row in rows)):
            return rows
        last = seen
    raise _changed(f"processes below {host.pid} came or went during each of {MOST_READS} reads of the tree")


def _walk(table: ProcessTable, host: ProcessRow, adopter: int | None) -> tuple[ProcessRow, ...]:
    other = None if adopter == host.pid else adopter
    lister = _listed_by(table, [host.pid] if other is None else [host.pid, other])
    rows = [host] if other is None else [host, *_adopted(table, lister, host, other)]
    for place, parent in enumerate(rows):  # it grows as we go
        if not parent.zombie:  # who has ended has no children any more
            rows[place], children = _family(table, lister, parent)
            rows += children
    return tuple(rows)


def _host(table: ProcessTable, identity: ProcessIdentity) -> ProcessRow:
    """The host's row, when the process with its number is still the host."""
    if isinstance(identity.start_ticks, Gap) or isinstance(identity.boot_id, Gap) or isinstance(table.boot_id, Gap):
        raise _unavailable(ResourceGap.IDENTITY_UNKNOWN, f"process {identity.pid} shows no start time or boot id")
    if identity.boot_id != table.boot_id:
        raise _unavailable(ResourceGap.HOST_EXITED, f"the machine has booted since process {identity.pid} was started")
    row = _row(table, identity.pid)
    if isinstance(row, Gone) or row.zombie:
        raise _unavailable(ResourceGap.HOST_EXITED, f"process {identity.pid} has ended")
    if row.start != identity.start_ticks:
        raise _unavailable(
            ResourceGap.HOST_EXITED, f"process {identity.pid} has ended; its number belongs to another one now"
        )
    return row


def _family(table: ProcessTable, lister: _Lister, parent: ProcessRow) -> tuple[ProcessRow, list[ProcessRow]]:
    """A parent and its children, all of one moment as far as CPU time goes."""
    for _ in range(MOST_READS):
        listed = lister(parent.pid)
        if isinstance(listed, Gone):
            raise _MemberEndedError
        children = [_child(table, pid, parent.pid, listed.before) for pid in sorted(listed.children)]
        again = _row(table, parent.pid)
        if isinstance(again, Gone) or again.zombie or (again.start, again.parent) != (parent.start, parent.parent):
            raise _MemberEndedError
        if again.waited_cpu_seconds == parent.waited_cpu_seconds:
            return parent, children
        parent = again
    raise _changed(f"process {parent.pid} waited for children during each of {MOST_READS} reads")


def _adopted(table: ProcessTable, lister: _Lister, host: ProcessRow, adopter: int) -> list[ProcessRow]:
    """The orphans that somebody took in for the host: no descendant is older than it is."""
    listed = lister(adopter)
    if isinstance(listed, Gone):
        raise _MemberEndedError
    rows = [_child(table, pid, adopter, listed.before) for pid in sorted(listed.children - {host.pid})]
    return [row for row in rows if row.start >= host.start]


def _child(table: ProcessTable, pid: int, parent: int, before: int) -> ProcessRow:
    """A listed child, read after the list; a number that is nobody's or a stranger's by now is of one that ended."""
    row = _row(table, pid)
    if isinstance(row, Gone) or row.parent != parent:
        raise _MemberEndedError
    if table.rule is IdentityRule.STARTED_BEFORE_LISTING and row.start > before:
        raise _MemberEndedError
    return row


def _listed_by(table: ProcessTable, tops: list[int]) -> _Lister:
    """How children are listed: process by process, or from one scan of the machine."""
    if not table.lists_children:
        below, before = _agreed(table, lambda: _scanned(table, tops), f"the list of processes below {tops[0]}")
        return lambda pid: _Listed(below.get(pid, frozenset()), before)

    def listed(pid: int) -> _Listed | Gone:
        children, before = _agreed(table, lambda: _children(table, pid), f"the list of children of process {pid}")
        return children if isinstance(children, Gone) else _Listed(children, before)

    return listed


def _agreed(table: ProcessTable, read: Callable[[], _Read], what: str) -> tuple[_Read, int]:
    """What two consecutive reads agree on, and a moment before the second of them."""
    last = read()
    for _ in range(MOST_READS - 1):
        before, now = table.now(), read()
        if now == last:
            return now, before
        last = now
    raise _changed(f"{what} changed between each of {MOST_READS} reads")


def _scanned(table: ProcessTable, tops: list[int]) -> dict[int, frozenset[int]]:
    """Children by parent, of these and all below them, from one scan of the machine."""
    parents = table.parents()
    if isinstance(parents, HiddenTable):
        raise _unavailable(ResourceGap.TABLE_HIDDEN, parents.why)
    if isinstance(parents, Unreadable):
        raise _unavailable(ResourceGap.UNREADABLE, parents.why)
    children = _by_parent(parents)
    below: dict[int, frozenset[int]] = {}
    waiting = list(tops)
    while waiting:
        pid = waiting.pop()
        if pid not in below:
            below[pid] = frozenset(children.get(pid, ()))
            waiting += below[pid]
    return below


def _by_parent(parents: Mapping[int, int]) -> dict[int, list[int]]:
    children: dict[int, list[int]] = {}
    for pid, parent in parents.items():
        children.setdefault(parent, []).append(pid)
    return children


def _row(table: ProcessTable, pid: int) -> ProcessRow | Gone:
    row = table.row(pid)
    if isinstance(row, Unreadable):
        raise _unavailable(ResourceGap.UNREADABLE, row.why)
    return row


def _children(table: ProcessTable, pid: int) -> frozenset[int] | Gone:
    children = table.children(pid)
    if isinstance(children, Unreadable):
        raise _unavailable(ResourceGap.UNREADABLE, children.why)
    return children


def _changed(what: str) -> ResourceObservationUnavailable:
    return _unavailable(ResourceGap.TREE_CHANGED, what)


def _unavailable(reason: ResourceGap, detail: str) -> ResourceObservationUnavailable:
    return ResourceObservationUnavailable(Gap(reason, detail))
