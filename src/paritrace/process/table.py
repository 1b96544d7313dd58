"""The process table of a machine as a protocol, so that every race of reading it can be scripted in a test (RS-3)."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from paritrace.evidence.gaps import Gap, ResourceGap
from paritrace.evidence.ids import ProcessIdentity


class IdentityRule(StrEnum):
    """How a listed child is known to be no stranger with a reused number."""

    PARENT_REREAD = "parent_reread"  # Linux: the parent, read after the child, has the start time it was counted with
    STARTED_BEFORE_LISTING = "started_before_listing"  # macOS: the child started before its parent's list was read


class ProcessRow(Struct, frozen=True):
    """One process at one moment.

    `start` is in the table's own unit and only compared within a table. `cpu_seconds`: user and system, its own and of
    the children it has waited for. `zombie`: it has ended and nobody has waited for it; its CPU still counts.
    """

    pid: int
    parent: int
    start: int
    session: int
    zombie: bool
    cpu_seconds: float
    resident_bytes: int


class Gone(Struct, frozen=True):
    """There is no such process any more: proven, not merely unseen."""


class Unreadable(Struct, frozen=True):
    """A process that lives, or may live, and cannot be read. `why` names it."""

    why: str


class Listing(Struct, frozen=True):
    """The children of one process. `before`: the moment before it was read, in the unit of `ProcessRow.start`."""

    children: frozenset[int]
    before: int


class ProcessTable(Protocol):
    """Reads the processes of a machine; each call is one read, and nothing is remembered between calls."""

    @property
    def rule(self) -> IdentityRule:
        """How this platform tells a child from a stranger."""
        ...

    @property
    def lists_children(self) -> bool:
        """Whether `children` works; else `parents` is read, at the cost of every process of the machine."""
        ...

    def identity(self, pid: int) -> ProcessIdentity | Gone | Unreadable:
        """Who a process is: pid, start, boot id."""
        ...

    def row(self, pid: int) -> ProcessRow | Gone | Unreadable:
        """Read one process."""
        ...

    def children(self, pid: int) -> Listing | Gone | Unreadable:
        """List the children of all threads of a process once."""
        ...

    def parents(self) -> Mapping[int, int] | Unreadable:
        """Every process of the machine with its parent; Unreadable when not all are listed."""
        ...

    def pss_bytes(self, pid: int) -> int | Gap[ResourceGap]:
        """Proportional set size of one process."""
        ...
