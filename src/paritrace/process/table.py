"""The process table of a machine as a protocol, so that every race of reading it can be scripted in a test (RS-3)."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from paritrace.evidence.gaps import Gap, ResourceGap, RunGap
from paritrace.evidence.ids import ProcessIdentity


class IdentityRule(StrEnum):
    """What a listed child has to show, besides its parent's number, to count as one and not as a stranger.

    The parent is read again after its children under either rule.
    """

    PARENT_REREAD = "parent_reread"  # Linux: no more than that
    STARTED_BEFORE_LISTING = "started_before_listing"  # macOS: that it started before its parent's list was read


class ProcessRow(Struct, frozen=True):
    """One process at one moment.

    `start` is in the table's own unit and only compared within one table. `session`: None where it is not shown.
    `own_cpu_seconds`, `waited_cpu_seconds`: user and system time of itself, and of the children that it has waited for.
    `zombie`: it has ended and nobody has waited for it; its CPU still counts.
    """

    pid: int
    parent: int
    start: int
    session: int | None
    zombie: bool
    own_cpu_seconds: float
    waited_cpu_seconds: float
    resident_bytes: int


class Gone(Struct, frozen=True):
    """There is no such process any more: proven, not merely unseen."""


class Unreadable(Struct, frozen=True):
    """A process that lives, or may live, and cannot be read. `why` names it."""

    why: str


class HiddenTable(Struct, frozen=True):
    """Not every process of the machine is listed. `why` says what hides them."""

    why: str


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

    @property
    def boot_id(self) -> str | Gap[RunGap]:
        """Which boot of the machine the numbers belong to."""
        ...

    def now(self) -> int:
        """The present moment in the unit of `ProcessRow.start`."""
        ...

    def age_seconds(self, start: int) -> float:
        """How long ago a `ProcessRow.start` was."""
        ...

    def identity(self, pid: int) -> ProcessIdentity:
        """Who a process is; its start is a gap where it shows none."""
        ...

    def row(self, pid: int) -> ProcessRow | Gone | Unreadable:
        """Read one process."""
        ...

    def children(self, pid: int) -> frozenset[int] | Gone | Unreadable:
        """List the children of all threads of a process, once."""
        ...

    def parents(self) -> Mapping[int, int] | Unreadable | HiddenTable:
        """Every process of the machine with its parent, once."""
        ...

    def pss_bytes(self, pid: int) -> int | Gap[ResourceGap]:
        """Proportional set size of one process."""
        ...
