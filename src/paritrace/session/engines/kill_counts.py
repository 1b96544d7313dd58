"""By how much a cgroup's counter of out-of-memory kills has risen since the ranks were started (SE-12, RS-7)."""

from paritrace.evidence.gaps import Gap, ResourceGap
from paritrace.process.cgroup_evidence import CgroupScope, OomCount
from paritrace.process.cgroup_rules import oom_rise
from paritrace.process.cgroups import Cgroups


class KillCounts:
    """The counter of the cgroup that a process is in: that of this process, and so of the ranks it starts."""

    def __init__(self, cgroups: Cgroups) -> None:
        self._cgroups = cgroups
        self._scope: CgroupScope | Gap[ResourceGap] = Gap(ResourceGap.NOT_COLLECTED)
        self._before: OomCount | Gap[ResourceGap] = Gap(ResourceGap.NOT_COLLECTED)

    def begin(self, pid: int) -> None:
        """Read the counter before the ranks run."""
        self._scope = self._cgroups.scope_of(pid)
        self._before = self._count()

    def rise(self) -> int | None:
        """How many kills were counted since; None where no counter tells."""
        rose = oom_rise(self._before, self._count())
        return None if isinstance(rose, Gap) else rose

    def _count(self) -> OomCount | Gap[ResourceGap]:
        return self._scope if isinstance(self._scope, Gap) else self._cgroups.oom_count(self._scope)
