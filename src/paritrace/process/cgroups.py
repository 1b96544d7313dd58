"""Reads cgroups of this machine: the scope of a process, its kill counts, its members, its limits (RS-7, E-05)."""

from paritrace.evidence.gaps import Gap, ResourceGap
from paritrace.process.cgroup_evidence import CgroupScope, MemoryLimit, OomCount


class Cgroups:
    """The memory cgroups that this mount namespace shows, of version 2 or 1, whichever has the memory controller.

    `proc`: where /proc is, for tests. Nothing is read before a method is called.
    """

    def __init__(self, *, proc: str = "/proc") -> None:
        self._proc = proc

    def scope_of(self, pid: int) -> CgroupScope | Gap[ResourceGap]:
        """The memory cgroup that `pid` is a direct member of; a gap for the root cgroup, which counts everybody's."""
        raise NotImplementedError

    def oom_count(self, scope: CgroupScope) -> OomCount | Gap[ResourceGap]:
        """The kills counted in a scope by now; a gap when it is gone, or another one has its place (device, inode)."""
        raise NotImplementedError

    def members(self, scope: CgroupScope) -> frozenset[int] | Gap[ResourceGap]:
        """The pids in a scope and in every cgroup below it."""
        raise NotImplementedError

    def memory_limit(self, scope: CgroupScope) -> MemoryLimit:
        """The tightest visible limit."""
        raise NotImplementedError
