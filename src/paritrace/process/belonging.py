"""Which processes belong to an invocation: its runner, its host's tree, the members of its own cgroup (RR-10)."""

import os

from paritrace.evidence.gaps import Gap
from paritrace.process.cgroup_evidence import CgroupScope
from paritrace.process.cgroups import Cgroups
from paritrace.process.ending import below
from paritrace.process.left_behind import parent_of, start_ticks

MOST_GENERATIONS = 1000  # a chain of parents ends at the first process; a number that is reused meanwhile may loop


def runner_and_ancestors() -> frozenset[int]:
    """This process and whoever started it, up to the first one."""
    found = [os.getpid()]
    while found[-1] > 1 and len(found) < MOST_GENERATIONS:
        parent = parent_of(found[-1])
        if not parent:
            break
        found.append(parent)
    return frozenset(found)


def belonging(host: int, *, since_ticks: int, own: CgroupScope | None, cgroups: Cgroups) -> frozenset[int]:
    """Pids that belong to a host's invocation.

    `own`: the cgroup that was made for it, whose members are its own where they began later than the host; without one
    the runner and its ancestors belong to it, as far as it shares their cgroup.
    """
    tree = below({host: str(since_ticks)}).keys()
    if own is None:
        return runner_and_ancestors() | tree
    members = cgroups.members(own)
    young = () if isinstance(members, Gap) else (pid for pid in members if _began_since(since_ticks, pid))
    return frozenset(young) | tree


def _began_since(ticks: int, pid: int) -> bool:
    began = start_ticks(pid)
    return began is None or began >= ticks
