"""The end line of run-record.jsonl: listed fields, no message, no value of the workload (RR-2)."""

from enum import StrEnum

from msgspec import Struct

from paritrace.evidence.gaps import Gap, ResourceGap
from paritrace.process.adapter_protocol import ReportedUsage
from paritrace.process.cgroup_evidence import OomCount
from paritrace.process.exit_watch import SeenExit
from paritrace.process.resources import ResourceSnapshot
from paritrace.process.samples import SampleSummary
from paritrace.process.stop_facts import Stop, StopFacts
from paritrace.runs.record_lines import RecordGap, Start


class RecordStatus(StrEnum):
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class RecordedError(Struct, frozen=True, forbid_unknown_fields=True):
    """An error without its message, which may hold anything."""

    code: str
    stage: str
    retryable: bool


class End(Struct, frozen=True, tag_field="line", tag="end", forbid_unknown_fields=True):
    """The last line. `elapsed_seconds` is of the monotonic clock, over the exchange alone.

    `waited_cpu_seconds`: user and system time of the host and of the descendants that were waited for, as the kernel
    hands it out with the wait status. `resources`: the tree after the exchange and before anything is ended. Of
    `oom_kill`, `usage`, `resources` and `sampled` each is null exactly when its `_gap` says why.
    """

    time: str
    wall_ns: int
    monotonic_ns: int
    runtime_id: str
    invocation_id: str
    request_id: str
    status: RecordStatus
    error: RecordedError | None
    elapsed_seconds: float
    stop: Stop | None
    facts: StopFacts
    oom_kill: OomCount | None = None
    oom_kill_gap: Gap[ResourceGap] | None = None
    usage: ReportedUsage | None = None
    usage_gap: Gap[RecordGap] | None = None
    resources: ResourceSnapshot | None = None
    resources_gap: Gap[ResourceGap] | None = None
    sampled: SampleSummary | None = None
    sampled_gap: Gap[ResourceGap] | None = None
    waited_cpu_seconds: float | Gap[RecordGap] = Gap(RecordGap.UNAVAILABLE)
    exits: tuple[SeenExit, ...] = ()  # of a launcher: the ends of its ranks on this machine, in their order


Line = Start | End
