"""The recorder of a host: what it may keep, and one invocation's record in the order that protects others (RR-3)."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from paritrace.clock import SYSTEM, Clock, rfc3339
from paritrace.errors import ParitraceError
from paritrace.evidence.gaps import Gap, ResourceGap, gap_of, value_of
from paritrace.files import LOCAL, Files
from paritrace.process.adapter_protocol import ReportedUsage
from paritrace.process.belonging import belonging, runner_and_ancestors
from paritrace.process.cgroups import Cgroups
from paritrace.process.kernel_log import KernelLog
from paritrace.process.left_behind import start_ticks
from paritrace.process.memory_watch import MemoryFacts, MemoryWatch
from paritrace.process.own_cgroup import OwnCgroup, make_cgroup
from paritrace.process.resources import ResourceSnapshot
from paritrace.process.stop_facts import Signalled, StopFacts, Victim, VictimSource
from paritrace.runs.adapters import Event
from paritrace.runs.record_ends import End, RecordedError
from paritrace.runs.record_lines import Ids, Names, RecordGap, Start, context_of, cut
from paritrace.runs.recording import RECORD_WRITE_FAILED, RunRecord, invocation_folder, start_line
from paritrace.runs.stop import stop_of


class Recorder:
    """The one switch: a host that is given one records every invocation; all settings have a default (RR-9).

    Args:
        agent, harness: names for people, cut at 256 characters.
        models: role -> model.
        context_keys: keys of an invocation's context whose values may be kept; all others are kept by name alone.
        exclusive: your word that nothing else runs in this container during an invocation, other hosts of this process
            included. A look at the members of the cgroup may contradict it.
        cgroup: give the host a memory cgroup of its own where we may, so that no word is needed.
    """

    def __init__(
        self,
        *,
        agent: str | None = None,
        harness: str | None = None,
        models: Mapping[str, str] | None = None,
        context_keys: tuple[str, ...] = (),
        exclusive: bool = False,
        cgroup: bool = False,
    ) -> None:
        self.agent = agent
        self.harness = harness
        self.models = {role: cut(model) for role, model in (models or {}).items()}
        self.context_keys = context_keys
        self.exclusive = exclusive
        self.cgroup = cgroup
        self.files: Files = LOCAL
        self.clock: Clock = SYSTEM
        self.cgroups = Cgroups()
        self.log: KernelLog | None = None  # tests give one; else each invocation opens the kernel's

    def own_cgroup(self, runtime_id: str) -> OwnCgroup | None:
        """Make the host's cgroup, where it was asked for and may be made."""
        if not self.cgroup:
            return None
        scope = self.cgroups.scope_of(os.getpid())
        made = scope if isinstance(scope, Gap) else make_cgroup(scope, name=runtime_id)
        return None if isinstance(made, Gap) else made


class Recording:
    """One invocation's record while it runs; under the host's lock but for `finish`."""

    def __init__(self, recorder: Recorder, root: Path, ids: Ids, *, host: int, own: OwnCgroup | None) -> None:
        self._recorder = recorder
        self._ids = ids
        self._host = host
        self._since = start_ticks(host) or 0
        self._own = None if own is None else own.scope
        self._record = RunRecord(invocation_folder(root, ids), files=recorder.files, clock=recorder.clock)
        scope = self._own or recorder.cgroups.scope_of(os.getpid())
        self._memory = MemoryWatch(
            recorder.cgroups,
            scope,
            declared=recorder.exclusive,
            own=own is not None,
            clock=recorder.clock,
            log=recorder.log,
        )
        self._facts = MemoryFacts(count=Gap(ResourceGap.NOT_COLLECTED))
        self._start: Start | None = None

    @property
    def path(self) -> Path:
        return self._record.path

    def begin(
        self, names: Names, *, context: Mapping[str, Any], overrides: Mapping[str, Any], timeout_seconds: float | None
    ) -> None:
        """Read the counter, make the record, write its start line: all before the adapter's deadline is set."""
        count = self._memory.before(ours=self._ours())
        kept = context_of(context, allowed=self._recorder.context_keys, overrides=overrides)
        line = start_line(self._ids, names, kept, timeout_seconds=timeout_seconds, clock=self._recorder.clock)
        self._start = replace(
            line,
            exclusive_container=self._recorder.exclusive,
            oom_kill=value_of(count),
            oom_kill_gap=gap_of(count),
        )
        self._record.create()
        self._record.start(self._start)

    def read_memory(self) -> None:
        """Read the counter; a second read after the host's exit keeps the larger count."""
        first = isinstance(self._facts.count, Gap)
        self._facts = self._memory.after(ours=self._ours(), larger_than=None if first else self._facts)

    def finish(
        self,
        facts: StopFacts,
        *,
        began_ns: int,
        error: RecordedError | None,
        usage: ReportedUsage | None,
        resources: ResourceSnapshot | Gap[ResourceGap],
    ) -> None:
        """Write the end line and force the record to disk, once the host's lock is free."""
        from paritrace.runs.recorded_end import status_of

        self._memory.close()
        clock, memory = self._recorder.clock, self._facts
        victims = (*memory.victims, *_host_victim(facts, self._host))
        whole = replace(
            facts,
            rises=memory.rises,
            exclusivity=memory.exclusivity,
            victims=victims,
            killers=memory.killers,
            remarks=memory.remarks,
        )
        wall_ns, monotonic_ns = clock.wall_ns(), clock.monotonic_ns()
        self._record.end(
            End(
                time=rfc3339(wall_ns),
                wall_ns=wall_ns,
                monotonic_ns=monotonic_ns,
                runtime_id=self._ids.runtime_id,
                invocation_id=self._ids.invocation_id,
                request_id=self._ids.request_id,
                status=status_of(whole),
                error=error,
                elapsed_seconds=(whole.ended_ns - began_ns) / 1e9,
                stop=stop_of(whole),
                facts=whole,
                oom_kill=value_of(memory.count),
                oom_kill_gap=gap_of(memory.count),
                usage=usage,
                usage_gap=None if usage is not None else Gap(RecordGap.NOT_GIVEN),
                resources=value_of(resources),
                resources_gap=gap_of(resources),
                sampled_gap=Gap(ResourceGap.NOT_COLLECTED),
            )
        )

    def events(self, other: ParitraceError | None) -> tuple[Event, ...]:
        """One event where anything of the record failed."""
        trouble = self._record.trouble or other
        return () if trouble is None else (Event(RECORD_WRITE_FAILED, trouble.code),)

    def _ours(self) -> frozenset[int]:
        if self._own is None and not self._recorder.exclusive:
            return frozenset()  # nobody looks at members then
        ours = belonging(self._host, since_ticks=self._since, own=self._own, cgroups=self._recorder.cgroups)
        return ours if self._own is not None else ours | runner_and_ancestors()


def _host_victim(facts: StopFacts, host: int) -> tuple[Victim, ...]:
    killed_by_us = any(one.signal == 9 for one in facts.sent)
    if facts.wait != Signalled(9) or killed_by_us or facts.host_ended_ns is None:
        return ()
    return (Victim(pid=host, source=VictimSource.REAPED, detail="the host: SIGKILL", seen_ns=facts.host_ended_ns),)
