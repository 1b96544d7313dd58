"""Rules of cgroup evidence: rises of counters, exclusivity, limits; pure, of texts and records (RS-7, RR-10)."""

from collections.abc import Collection

from paritrace.evidence.gaps import Gap, ResourceGap
from paritrace.process.cgroup_evidence import Exclusivity, OomCount


def oom_rise(before: OomCount | Gap[ResourceGap], after: OomCount | Gap[ResourceGap]) -> int | Gap[ResourceGap]:
    """How many kills were counted between two reads of one scope; a gap where the scope changed or the count fell."""
    if isinstance(before, Gap):
        return before
    if isinstance(after, Gap):
        return after
    if (before.scope.device, before.scope.inode) != (after.scope.device, after.scope.inode):
        return Gap(ResourceGap.SCOPE_CHANGED, f"{before.scope.path} is another cgroup now")
    if before.source != after.source:
        return Gap(ResourceGap.SCOPE_CHANGED, f"read from {before.source}, then from {after.source}")
    rise = after.oom_kill - before.oom_kill
    return rise if rise >= 0 else Gap(ResourceGap.FELL, f"{after.source} of {after.scope.path}")


def exclusivity(
    members: Collection[int] | Gap[ResourceGap], *, ours: Collection[int], declared: bool, own: bool
) -> Exclusivity:
    """What a look at the members of a cgroup, and of all below it, says of exclusivity.

    `ours`: the runner, the host and its descendants by pid. `declared`: the user said that the container is exclusive.
    `own`: the cgroup was made for this invocation by us, and the runner never was in it.
    """
    if not (declared or own):
        return Exclusivity.UNKNOWN
    if not isinstance(members, Gap):
        if set(members) - set(ours):
            return Exclusivity.CONTRADICTED
        if own:
            return Exclusivity.VERIFIED
    return Exclusivity.DECLARED if declared else Exclusivity.UNKNOWN


def worse(one: Exclusivity, other: Exclusivity) -> Exclusivity:
    """What two looks say together: CONTRADICTED once is contradicted, then UNKNOWN, DECLARED, VERIFIED."""
    order = (Exclusivity.CONTRADICTED, Exclusivity.UNKNOWN, Exclusivity.DECLARED, Exclusivity.VERIFIED)
    return min(one, other, key=order.index)
