"""Looks at a command's tree and cgroup around its run; each look that fails is a gap or a remark, never an error."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from paritrace.clock import SYSTEM, Clock
from paritrace.evidence.gaps import Gap, ResourceGap
from paritrace.process.cgroup_evidence import OomCount
from paritrace.process.cgroups import Cgroups
from paritrace.process.commands import CommandEnd, Watch
from paritrace.process.memory_watch import MemoryFacts, MemoryWatch
from paritrace.runs.record_lines import Ids

if TYPE_CHECKING:
    from paritrace.process.kernel_log import KernelLog
    from paritrace.process.observing import TreeObserver
    from paritrace.process.own_cgroup import OwnCgroup
    from paritrace.process.resources import ResourceSnapshot
    from paritrace.process.samples import SampleSummary
    from paritrace.process.sampling import Sampler
    from paritrace.process.stop_facts import Left, Victim


class Watching(Struct, frozen=True):
    """What to look at.

    Args:
        exclusive: the user's word that nothing else runs in our cgroup.
        cgroup: make a cgroup for the command, so that this needs no word.
        sample_seconds: sample the tree at this interval.
        device_errors: name the errors of NVIDIA devices (Xid) that the kernel logs meanwhile.
        subreaper: adopt the command's orphans, so that daemons stay in the tree.
    """

    exclusive: bool = False
    cgroup: bool = False
    sample_seconds: float | None = None
    subreaper: bool = False
    device_errors: bool = False


class CommandWatch(Watch):
    """One command's watch; `close` gives back what it holds."""

    def __init__(
        self, watching: Watching, ids: Ids, *, clock: Clock = SYSTEM, started: Callable[[], None] = lambda: None
    ) -> None:
        self.memory = MemoryFacts(count=Gap(ResourceGap.NOT_COLLECTED))
        self.resources: ResourceSnapshot | Gap[ResourceGap] = Gap(ResourceGap.HOST_EXITED)
        self.sampled: SampleSummary | Gap[ResourceGap] = Gap(ResourceGap.NOT_COLLECTED)
        self.victims: tuple[Victim, ...] = ()
        self.left: tuple[Left, ...] = ()
        self.remarks: list[str] = []
        self._watching = watching
        self._ids = ids
        self._clock = clock
        self._cgroups = Cgroups()
        self._tell_started = started
        self._memory: MemoryWatch | None = None
        self._own: OwnCgroup | None = None
        self._sampler: Sampler | None = None
        self._devices: KernelLog | None = None
        self._pid = 0
        self._since = 0

    @property
    def join(self) -> Callable[[], None] | None:
        """What the child does to enter its own cgroup; None where it has none."""
        return None if self._own is None else self._own.join

    def before(self) -> OomCount | Gap[ResourceGap]:
        """Read the counter that brackets the command."""
        if self._watching.subreaper:
            from paritrace.process.orphans import adopt_orphans

            self._remark(adopt_orphans())
        cgroups = self._cgroups
        scope = cgroups.scope_of(os.getpid())
        if self._watching.cgroup and not isinstance(scope, Gap):
            from paritrace.process.own_cgroup import make_cgroup  # loaded only where it is asked for: a start costs

            made = make_cgroup(scope, name=self._ids.invocation_id)
            if isinstance(made, Gap):
                self._remark(f"no cgroup of its own: {made.detail or made.gap.value}")
            else:
                self._own, scope = made, made.scope
        elif isinstance(scope, Gap) and self._watching.cgroup:
            self._remark(f"no cgroup of its own: {scope.detail or scope.gap.value}")
        own = self._own is not None
        self._memory = MemoryWatch(cgroups, scope, declared=self._watching.exclusive, own=own, clock=self._clock)
        return self._memory.before(ours=_runner() if self._watching.exclusive else ())

    def started(self, pid: int) -> None:
        from paritrace.process.left_behind import start_ticks

        self._pid = pid
        if self._watching.device_errors:
            from paritrace.process.kernel_log import KernelLog

            self._devices = KernelLog()
        self._since = start_ticks(pid) or 0
        if self._watching.sample_seconds is not None:
            self._sample(pid, self._watching.sample_seconds)
        self._tell_started()

    def before_stop(self) -> None:
        self.resources = self._look(self._pid)

    def ended(self) -> None:
        if self._sampler is not None:
            _, self.sampled = self._sampler.stop()
        if self._memory is not None:
            self.memory = self._memory.after(ours=self._ours())
        if self._devices is not None:
            from paritrace.process.kernel_log import xids

            self._remark(self._devices.trouble)
            for error in xids(self._devices.records()):
                self._remark(f"the kernel logged Xid {error.number} of device {error.device}")
            self._devices.close()

    def reaped(self, end: CommandEnd) -> None:
        """Take what only shows once the command was waited for: adopted ones that ended, and who is left."""
        from paritrace.process import left_behind as leaving
        from paritrace.process.stop_facts import Exited, Signalled

        we_killed = any(one.signal == signal.SIGKILL for one in end.sent)
        victims = [_host_killed(end)] if end.wait == Signalled(signal.SIGKILL) and not we_killed else []
        if self._watching.subreaper:
            from paritrace.process.orphans import killed_by_others, reap_adopted

            victims += killed_by_others(reap_adopted(clock=self._clock), we_killed=we_killed)
        self.victims = tuple(victims)
        if self._memory is not None and end.wait != Exited(0):
            self.memory = self._memory.after(ours=self._ours(), larger_than=self.memory)
        if self._watching.subreaper or leaving.group_lives(end.pid) or leaving.outputs_are_pipes():
            adopted = self._watching.subreaper
            self.left = leaving.left_behind(end.pid, since_ticks=self._since, adopted=adopted)

    def close(self) -> None:
        """Let go of the log and the cgroup."""
        if self._memory is not None:
            self._memory.close()
        if self._own is not None:
            self._own.remove()

    def _ours(self) -> frozenset[int]:
        from paritrace.process.belonging import belonging

        own = None if self._own is None else self._own.scope
        return belonging(self._pid, since_ticks=self._since, own=own, cgroups=self._cgroups)

    def _sample(self, pid: int, seconds: float) -> None:
        observer = self._observer(pid)
        if isinstance(observer, Gap):
            self.sampled = observer
            return
        from paritrace.process.sampling import Sampler

        self._sampler = Sampler(observer.final, interval_seconds=seconds, clock=self._clock)
        self._sampler.start()

    def _look(self, pid: int) -> ResourceSnapshot | Gap[ResourceGap]:
        observer = self._observer(pid)
        return observer if isinstance(observer, Gap) else observer.final()

    def _observer(self, pid: int) -> TreeObserver | Gap[ResourceGap]:
        from paritrace.process.observing import TreeObserver, observed_host, this_machine
        from paritrace.process.resources import ResourceObservationUnavailable, ResourceObservationUnsupported

        try:
            table = this_machine()
            host = observed_host(table, pid, subject=self._ids.runtime_id, clock=self._clock)
        except (ResourceObservationUnavailable, ResourceObservationUnsupported) as error:
            return error.gap
        adopts = self._watching.subreaper
        return TreeObserver(table, host, clock=self._clock, lineage=adopts, adopter=os.getpid() if adopts else None)

    def _remark(self, text: str) -> None:
        if text:
            self.remarks.append(text)


def _runner() -> frozenset[int]:
    from paritrace.process.belonging import runner_and_ancestors

    return runner_and_ancestors()


def _host_killed(end: CommandEnd) -> Victim:
    from paritrace.process.stop_facts import Victim, VictimSource

    return Victim(
        pid=end.pid, source=VictimSource.REAPED, detail="the command itself: SIGKILL", seen_ns=end.host_ended_ns
    )
