"""Observes the tree of one host: the shell that joins the rule, a process table and a clock (RS-1, RS-11)."""

import sys

from paritrace.clock import SYSTEM, Clock, rfc3339
from paritrace.evidence.gaps import Gap, ResourceGap
from paritrace.process.libproc import macos_table
from paritrace.process.procfs import linux_table
from paritrace.process.resources import (
    ObservedHost,
    ResourceObservationUnavailable,
    ResourceObservationUnsupported,
    ResourceSnapshot,
)
from paritrace.process.snapshots import Identity, first_parents, snapshot_of, with_lineage
from paritrace.process.table import Gone, ProcessTable, Unreadable
from paritrace.process.tree import read_tree


def this_machine(platform: str = sys.platform) -> ProcessTable:
    """The process table of this machine.

    Raises:
        ResourceObservationUnsupported: Refused: neither Linux nor macOS.
    """
    if platform == "linux":
        return linux_table()
    if platform == "darwin":
        return macos_table()
    name = "Windows" if platform == "win32" else platform
    raise ResourceObservationUnsupported(Gap(ResourceGap.UNSUPPORTED_PLATFORM, f"{name} is not supported"))


class TreeObserver:
    """Reads snapshots of one host. It takes no lock, so that a live snapshot never waits for an invocation (RS-1).

    `pss`: read proportional memory too, which costs the kernel a walk of every page table. `lineage`: name those that
    left the session or lost their parent, with what earlier snapshots of this observer saw. `adopter`: the
    number of whoever was made to take in orphans, the host itself or another process for this host alone.
    """

    def __init__(
        self,
        table: ProcessTable,
        host: ObservedHost,
        *,
        clock: Clock = SYSTEM,
        pss: bool = False,
        lineage: bool = False,
        adopter: int | None = None,
    ) -> None:
        self.host = host
        self._table = table
        self._clock = clock
        self._pss = pss
        self._lineage = lineage
        self._adopter = adopter
        self._earlier: dict[Identity, int] = {}

    def snapshot(self) -> ResourceSnapshot:
        """Read the tree now.

        Raises:
            ResourceObservationUnavailable: Refused: the host has exited, a live process cannot be read, not every
                process is listed, or the tree kept changing.
        """
        observed_at = rfc3339(self._clock.wall_ns())
        rows = read_tree(self._table, self.host.identity, adopter=self._adopter)
        pss_of = self._table.pss_bytes if self._pss else None
        found = snapshot_of(rows, self.host, observed_at=observed_at, pss_of=pss_of)
        if not self._lineage:
            return found
        self._earlier = first_parents(rows, earlier=self._earlier)
        return with_lineage(found, rows, subreaper=self._adopter is not None, earlier=self._earlier)

    def final(self) -> ResourceSnapshot | Gap[ResourceGap]:
        """The same for a record: what is raised above is a gap here (RS-11)."""
        try:
            return self.snapshot()
        except ResourceObservationUnavailable as unavailable:
            return unavailable.gap


def observed_host(table: ProcessTable, pid: int, *, subject: str, clock: Clock = SYSTEM) -> ObservedHost:
    """Fix the identity of a host that we started and have not waited for, so that its number is its own.

    Raises:
        ResourceObservationUnavailable: Refused: it has exited already, or cannot be read.
    """
    row = table.row(pid)
    if isinstance(row, Unreadable):
        raise ResourceObservationUnavailable(Gap(ResourceGap.UNREADABLE, row.why))
    if isinstance(row, Gone):
        raise ResourceObservationUnavailable(Gap(ResourceGap.HOST_EXITED, f"process {pid} has ended"))
    started_ns = clock.wall_ns() - round(table.age_seconds(row.start) * 1e9)
    return ObservedHost(subject=subject, identity=table.identity(pid), started_at=rfc3339(started_ns))
