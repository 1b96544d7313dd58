"""Brackets an exchange with reads of a cgroup's kill counter, and names victims and other killers (SC-0, RS-7)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from paritrace.clock import SYSTEM, Clock
from paritrace.evidence.gaps import Gap, ResourceGap
from paritrace.process.cgroup_evidence import CgroupScope, Exclusivity, OomCount
from paritrace.process.cgroup_rules import exclusivity, oom_rise, worse
from paritrace.process.cgroups import Cgroups
from paritrace.process.kernel_log import KernelLog, oom_kills

if TYPE_CHECKING:  # the words of an end are loaded at an end (PF-16)
    from paritrace.process.stop_facts import OomRise, Victim


class MemoryFacts(Struct, frozen=True):
    """What the reads after an exchange show beside those before it."""

    count: OomCount | Gap[ResourceGap]
    rises: tuple[OomRise, ...] = ()
    exclusivity: Exclusivity = Exclusivity.UNKNOWN
    victims: tuple[Victim, ...] = ()
    killers: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


class MemoryWatch:
    """Watches one scope over one exchange. `own`: the scope was made by us for this exchange alone."""

    def __init__(
        self,
        cgroups: Cgroups,
        scope: CgroupScope | Gap[ResourceGap],
        *,
        declared: bool,
        own: bool = False,
        clock: Clock = SYSTEM,
        log: KernelLog | None = None,
    ) -> None:
        self._cgroups = cgroups
        self._scope = scope
        self._declared = declared
        self._own = own
        self._clock = clock
        self._log = KernelLog() if log is None else log
        self._before: OomCount | Gap[ResourceGap] = Gap(ResourceGap.NOT_COLLECTED)
        self._seen = Exclusivity.VERIFIED

    def before(self, *, ours: Collection[int]) -> OomCount | Gap[ResourceGap]:
        """Read the counter and the members before the exchange begins; `ours` are pids that belong to it."""
        self._before = self._count()
        if not isinstance(self._scope, Gap):
            self._seen = self._look(ours)
        return self._before

    def look(self, *, ours: Collection[int]) -> None:
        """Look at the members in between: a stranger seen once contradicts what was declared."""
        self._seen = worse(self._seen, self._look(ours))

    def after(self, *, ours: Collection[int], larger_than: MemoryFacts | None = None) -> MemoryFacts:
        """Read everything again once the end was seen; of two such reads the larger count stays."""
        if isinstance(self._scope, Gap):
            return MemoryFacts(count=self._scope)
        count = self._count()
        if larger_than is not None and not _is_larger(count, larger_than.count):
            return larger_than
        self.look(ours=ours)
        rose = oom_rise(self._before, count)
        if isinstance(self._before, Gap) or isinstance(count, Gap) or isinstance(rose, Gap) or rose == 0:
            remarks = (f"counter not comparable: {rose.gap.value}",) if isinstance(rose, Gap) else ()
            return MemoryFacts(count, exclusivity=self._seen, killers=self._killers(count), remarks=remarks)
        from paritrace.process.stop_facts import OomRise

        return MemoryFacts(
            count,
            rises=(OomRise(before=self._before, after=count),),
            exclusivity=self._seen,
            victims=self._victims(self._scope),
            killers=self._killers(count),
            remarks=(self._log.trouble,) if self._log.trouble else (),
        )

    def close(self) -> None:
        """Let go of the kernel's log."""
        self._log.close()

    def _count(self) -> OomCount | Gap[ResourceGap]:
        return self._scope if isinstance(self._scope, Gap) else self._cgroups.oom_count(self._scope)

    def _look(self, ours: Collection[int]) -> Exclusivity:
        if isinstance(self._scope, Gap):
            return Exclusivity.UNKNOWN
        members = self._cgroups.members(self._scope) if self._declared or self._own else frozenset[int]()
        return exclusivity(members, ours=ours, declared=self._declared, own=self._own)

    def _victims(self, scope: CgroupScope) -> tuple[Victim, ...]:
        """Kills that the log places in the scope, whose path it gives as the whole machine sees it."""
        from paritrace.process.stop_facts import Victim, VictimSource

        kills = [one for one in oom_kills(self._log.records()) if _within(one.cgroup, scope.path)]
        now = self._clock.monotonic_ns()
        return tuple(
            Victim(pid=one.pid, source=VictimSource.KERNEL_LOG, detail=f"{one.name} in {one.cgroup}", seen_ns=now)
            for one in kills
        )

    def _killers(self, count: OomCount | Gap[ResourceGap]) -> tuple[str, ...]:
        """Other killers than the kernel's for one process, as far as they leave a trace."""
        if isinstance(count, Gap) or isinstance(self._before, Gap):
            return ()
        return tuple(_rises(self._before, count))


def _rises(before: OomCount, after: OomCount) -> Iterator[str]:
    pairs = (
        ("systemd_oomd_kills", before.systemd_oomd_kills, after.systemd_oomd_kills),
        ("oom_group_kill", before.oom_group_kill, after.oom_group_kill),
    )
    for name, earlier, later in pairs:
        known = 0 if isinstance(earlier, Gap) else earlier
        if not isinstance(later, Gap) and later > known:
            yield f"{name} +{later - known}"


def _is_larger(count: OomCount | Gap[ResourceGap], other: OomCount | Gap[ResourceGap]) -> bool:
    if isinstance(count, Gap):
        return False
    return isinstance(other, Gap) or count.oom_kill > other.oom_kill


def _within(cgroup: str, scope: str) -> bool:
    """Whether the log's path is the scope's or below it; inside a cgroup namespace ours is the end of the log's."""
    return cgroup == scope or cgroup.startswith(f"{scope}/") or f"{cgroup}/".endswith(f"{scope}/")
