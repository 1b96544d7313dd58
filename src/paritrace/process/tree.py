"""The rule that reads a process tree out of a table: whole, or not at all (RS-1 to RS-4, RS-9, RS-10)."""

from paritrace.process.resources import ObservedHost, ResourceSnapshot
from paritrace.process.table import ProcessTable

MOST_READS = 4
"""Lists of children that change faster than four reads follow are not waited for (RS-3, RS-10)."""


def read_snapshot(table: ProcessTable, host: ObservedHost, *, observed_at: str, pss: bool = False) -> ResourceSnapshot:
    """Read the tree of `host`.

    `observed_at`: RFC 3339, the moment of the call. `pss`: read proportional memory too, which costs the kernel a walk
    of every page table.

    Raises:
        ResourceObservationUnavailable: Refused: the host has exited, a live process cannot be read, not every process
            is listed, or the tree kept changing.
    """
    raise NotImplementedError
