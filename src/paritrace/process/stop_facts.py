"""How something that was run came to its end: facts with their times, and the cause that they support (SC-0 to SC-5).

Times are nanoseconds of the monotonic clock of the boot that the run record's start line names.
"""

from enum import StrEnum

from msgspec import Struct

from paritrace.evidence.gaps import Gap
from paritrace.process.cgroup_evidence import Exclusivity, OomCount


class ExchangeEnd(StrEnum):
    """How the exchange with a host, or the run of a command, came to its end as its caller saw it."""

    SUCCEEDED = "succeeded"  # the adapter returned a result; the command exited with 0
    FAILED_RESULT = "failed_result"  # the adapter returned a failed result
    CANCELLED = "cancelled"  # the caller called it off; the command was sent a signal through us to end
    TIMED_OUT = "timed_out"  # our own timer fired first
    HOST_EXITED = "host_exited"  # the host ended by itself; the command was ended by a signal
    COMMAND_FAILED = "command_failed"  # the command exited with another status than 0
    RAISED = "raised"  # any other error of ours or of the exchange


class StopCause(StrEnum):
    SANDBOX_FAILED = "sandbox_failed"
    AGENT_EXHAUSTED_BUDGET = "agent_exhausted_budget"
    AGENT_FAILED = "agent_failed"
    COMMAND_FAILED = "command_failed"
    RUNNER_FAILED = "runner_failed"
    UNCLASSIFIED = "unclassified"


class StopReason(StrEnum):
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"


class StopGap(StrEnum):
    """Why there is no wait status."""

    NOT_STARTED = "not_started"
    NOT_REAPED = "not_reaped"  # it had not ended when the record was closed, or somebody else waited for it
    OWN_RECORD = "own_record"  # a process that records itself has no wait status yet


class Exited(Struct, frozen=True, tag_field="how", tag="exited", forbid_unknown_fields=True):
    """An exit status of the process's own choice: 137 is a number like any other (SC-1)."""

    code: int


class Signalled(Struct, frozen=True, tag_field="how", tag="signalled", forbid_unknown_fields=True):
    """Ended by a signal, as the wait status says; who sent it is not known from that."""

    signal: int


Wait = Exited | Signalled


class Timer(Struct, frozen=True, forbid_unknown_fields=True):
    """Our own timer: when it was set, and when it fired, null where it did not."""

    limit_seconds: float
    set_ns: int
    fired_ns: int | None


class SentSignal(Struct, frozen=True, forbid_unknown_fields=True):
    """A signal that we sent to the group (`to` < 0) or one process; `why`: forwarded, timeout, grace_over, closing."""

    signal: int
    to: int
    why: str
    sent_ns: int


class Stopped(Struct, frozen=True, forbid_unknown_fields=True):
    """The command was stopped (not ended) by a job control signal; it ended or went on later."""

    signal: int
    seen_ns: int


class OomRise(Struct, frozen=True, forbid_unknown_fields=True):
    """Two reads of one cgroup's counter of out-of-memory kills, the second one higher."""

    before: OomCount
    after: OomCount


class VictimSource(StrEnum):
    REAPED = "reaped"  # a process of the tree whose wait status is SIGKILL, and we sent none
    KERNEL_LOG = "kernel_log"


class Victim(Struct, frozen=True, forbid_unknown_fields=True):
    """A process that was killed without our doing, in the scope of a rise."""

    pid: int
    source: VictimSource
    detail: str
    seen_ns: int


class Left(Struct, frozen=True, forbid_unknown_fields=True):
    """A process that was left when the host had ended; `holds`: outputs of ours that it keeps open."""

    pid: int
    name: str
    relation: str
    holds: tuple[str, ...]


class StopFacts(Struct, frozen=True, forbid_unknown_fields=True):
    """The set of facts beside the one-word cause (SC-0).

    `ended_ns` is when the end of the exchange was seen, after a timeout when our timer fired; `host_ended_ns` when the
    host's end was seen, null where it goes on. `wait` is null exactly when `wait_gap` says why. `force_stopped`: it
    ended by the SIGKILL that we sent after the grace.
    """

    exchange: ExchangeEnd
    ended_ns: int
    wait: Wait | None = None
    wait_gap: Gap[StopGap] | None = None
    host_ended_ns: int | None = None
    timer: Timer | None = None
    force_stopped: bool = False
    sent: tuple[SentSignal, ...] = ()
    stopped: tuple[Stopped, ...] = ()
    rises: tuple[OomRise, ...] = ()
    exclusivity: Exclusivity = Exclusivity.UNKNOWN
    victims: tuple[Victim, ...] = ()
    killers: tuple[str, ...] = ()  # others that kill and left a trace: systemd-oomd, oom_group_kill
    left: tuple[Left, ...] = ()
    remarks: tuple[str, ...] = ()


class Stop(Struct, frozen=True, forbid_unknown_fields=True):
    """Why it stopped, in one word where the facts support one. Fields that do not apply to the cause are null.

    `oom_in_scope`: a rise that bracketed the end and is not the cause, with the reason why it is not.
    """

    cause: StopCause
    reason: StopReason | None = None
    exit: Wait | None = None
    timeout_seconds: float | None = None
    used_seconds: float | None = None
    force_stopped: bool | None = None
    oom_in_scope: str | None = None
