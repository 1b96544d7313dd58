"""The rule that makes a snapshot of a tree that was read whole: sums, and who left its place (RS-1, RS-6, RS-8)."""

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from paritrace.evidence.gaps import Gap, ResourceGap
from paritrace.process.resources import ObservedHost, ResourceSnapshot
from paritrace.process.table import ProcessRow

Identity = tuple[int, int]
"""Pid and start of a process within one table."""

_NOT_COLLECTED = Gap(ResourceGap.NOT_COLLECTED)


def snapshot_of(
    rows: Sequence[ProcessRow],
    host: ObservedHost,
    *,
    observed_at: str,
    pss_of: Callable[[int], int | Gap[ResourceGap]] | None = None,
) -> ResourceSnapshot:
    """Sum the rows of one tree.

    `observed_at`: RFC 3339. `pss_of`: proportional memory of a process in bytes; None: not asked for.
    """
    live = [row for row in rows if not row.zombie]
    return ResourceSnapshot(
        subject=host.subject,
        host=host.identity,
        started_at=host.started_at,
        observed_at=observed_at,
        resident_memory_bytes=sum(row.resident_bytes for row in live),
        pss_bytes=_NOT_COLLECTED if pss_of is None else _whole_sum([pss_of(row.pid) for row in live]),
        process_count=len(live),
        cpu_time_seconds=round(sum(row.own_cpu_seconds + row.waited_cpu_seconds for row in rows), 6),
    )


def _whole_sum(figures: Sequence[int | Gap[ResourceGap]]) -> int | Gap[ResourceGap]:
    """The sum, or the first gap: part of a tree is never shown as a whole one (RS-2)."""
    total = 0
    for figure in figures:
        if isinstance(figure, Gap):
            return figure
        total += figure
    return total


def with_lineage(
    snapshot: ResourceSnapshot, rows: Sequence[ProcessRow], *, subreaper: bool, earlier: Mapping[Identity, int]
) -> ResourceSnapshot:
    """Name those who left the host's session, and the children of the host that are proven not to be its own.

    A process is born into its parent's session and can only leave it for one with its own number. `earlier`: see
    `first_parents`.
    """
    host, live = rows[0], [row for row in rows[1:] if not row.zombie]
    members = {row.pid for row in rows}
    return replace(
        snapshot,
        subreaper=subreaper,
        reparented=tuple(row.pid for row in live if row.parent not in members or _is_adopted(row, host, earlier)),
        other_session=tuple(row.pid for row in live if row.session is not None and row.session != host.session),
    )


def _is_adopted(row: ProcessRow, host: ProcessRow, earlier: Mapping[Identity, int]) -> bool:
    if row.parent != host.pid:
        return False
    if earlier.get((row.pid, row.start), host.pid) != host.pid:
        return True
    return row.session is not None and host.session is not None and row.session not in (host.session, row.pid)


def first_parents(rows: Sequence[ProcessRow], *, earlier: Mapping[Identity, int]) -> dict[Identity, int]:
    """The parent below which each process of a tree was seen first, by identity."""
    return {(row.pid, row.start): earlier.get((row.pid, row.start), row.parent) for row in rows}
