"""E-15: process numbers of a driver or of the kernel's log are of a namespace that nobody names: nothing joins by them.

NVIDIA's library hands out numbers of the host in some calls and of the container in others. None of it is read here;
what the kernel's log says of a device or of a kill is told by device and by cgroup, whatever process has that number.
"""

import os

from paritrace.evidence.gaps import Gap, ResourceGap
from paritrace.process.cgroup_evidence import CgroupScope, CgroupVersion, OomCount
from paritrace.process.cgroups import Cgroups
from paritrace.process.kernel_log import KernelLog, Xid, xids
from paritrace.process.memory_watch import MemoryFacts, MemoryWatch

INSIDE, OUTSIDE = 324, 645400  # one process: as its container counts, and as the host does
SCOPE = CgroupScope(CgroupVersion.V2, path="/job", directory="/job", top="/", device=1, inode=2)
NOT_KEPT = Gap(ResourceGap.NO_COUNTER)


def kill(pid: int, cgroup: str) -> str:
    return (
        f"6,1,1,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),oom_memcg={cgroup},"
        f"task_memcg={cgroup},task=python,pid={pid},uid=0"
    )


class _Log(KernelLog):
    def __init__(self, *lines: str) -> None:
        super().__init__(os.devnull)
        self._lines = list(lines)

    def records(self) -> list[str]:
        return self._lines


class _Rising(Cgroups):
    """One cgroup that has counted one kill more at each read."""

    reads = 0

    def oom_count(self, scope: CgroupScope) -> OomCount | Gap[ResourceGap]:
        self.reads += 1
        return OomCount(scope, "memory.events", self.reads, NOT_KEPT, NOT_KEPT, NOT_KEPT, NOT_KEPT, self.reads)


def watched(*lines: str) -> MemoryFacts:
    watch = MemoryWatch(_Rising(), SCOPE, declared=False, log=_Log(*lines))
    watch.before(ours={INSIDE})
    return watch.after(ours={INSIDE})


def test_e15_a_kill_with_the_number_of_our_process_in_another_cgroup_is_not_ours() -> None:
    facts = watched(kill(INSIDE, "/other"))
    assert len(facts.rises) == 1
    assert facts.victims == ()


def test_e15_a_kill_in_our_cgroup_is_told_as_the_log_has_it_whatever_its_number() -> None:
    (victim,) = watched(kill(OUTSIDE, "/job")).victims
    assert (victim.pid, victim.detail) == (OUTSIDE, "python in /job")


def test_e15_an_error_of_a_device_names_the_device_and_no_process() -> None:
    logged = f"3,7,99,-;NVRM: Xid (PCI:0000:3b:00): 31, pid={INSIDE}, name=python, Ch 00000008"
    assert xids([logged]) == [Xid("PCI:0000:3b:00", 31, 99)]
