"""Observes the tree of one host: the shell that joins the rule, a process table and a clock (RS-1, RS-11)."""

from paritrace.clock import SYSTEM, Clock
from paritrace.evidence.gaps import Gap, ResourceGap
from paritrace.process.resources import ObservedHost, ResourceSnapshot
from paritrace.process.table import ProcessTable


def this_machine() -> ProcessTable:
    """The process table of this machine.

    Raises:
        ResourceObservationUnsupported: Refused: not Linux or macOS.
    """
    raise NotImplementedError


class TreeObserver:
    """Reads snapshots of one host. It takes no lock, so that a live snapshot never waits for an invocation (RS-1)."""

    def __init__(self, table: ProcessTable, host: ObservedHost, *, clock: Clock = SYSTEM, pss: bool = False) -> None:
        self._table, self._host, self._clock, self._pss = table, host, clock, pss

    def snapshot(self) -> ResourceSnapshot:
        """Read the tree now.

        Raises:
            ResourceObservationUnavailable: Refused.
        """
        raise NotImplementedError

    def final(self) -> ResourceSnapshot | Gap[ResourceGap]:
        """The same for a record: what is raised above is a gap here (RS-11)."""
        raise NotImplementedError


def observe(pid: int, *, subject: str, table: ProcessTable, clock: Clock = SYSTEM) -> TreeObserver:
    """Fix the identity of a host that has just been started by us, and observe it from now on.

    Raises:
        ResourceObservationUnavailable: Refused: it has exited already, or cannot be read.
    """
    raise NotImplementedError
