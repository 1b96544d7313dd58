"""Absence as a value: `Gap(reason, detail?)`, written in JSON in place of the value (EV-5, P1)."""

from enum import StrEnum
from typing import Any, Generic, TypeVar, cast

from msgspec import Struct

Reason = TypeVar("Reason", bound=StrEnum)


class Gap(Struct, Generic[Reason], frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A value that is not known, with the reason from a closed list and an optional detail."""

    gap: Reason
    detail: str | None = None


Known = TypeVar("Known")


def value_of(value: Known | Gap[Any]) -> Known | None:
    """Return the value, None where it is a gap: for a record that keeps the two in two fields."""
    return None if isinstance(value, Gap) else value


def gap_of(value: object | Gap[Reason]) -> Gap[Reason] | None:
    """Return the gap, None where there is a value: the other one of the two fields."""
    return cast("Gap[Reason]", value) if isinstance(value, Gap) else None


class CaptureGap(StrEnum):
    """Why a captured slot, state or figure has no value."""

    UNINITIALISED = "uninitialised"  # the bytes were never written, or are about to be overwritten (CA-35)
    IN_FLIGHT = "in_flight"  # a collective that had not completed (CA-31)
    NO_DATA = "no_data"  # meta, fake or functorch-wrapped tensors hold no bytes of their own
    UNSUPPORTED_LAYOUT = "unsupported_layout"  # sparse, nested, mkldnn: kind recorded, bytes not read
    UNSUPPORTED_DEVICE = "unsupported_device"  # XLA, MPS, or an accelerator this build cannot read
    UNSUPPORTED_DTYPE = "unsupported_dtype"
    NOT_COLLECTED = "not_collected"  # switched off by a setting
    OVER_BUDGET = "over_budget"  # left out by --max-bytes
    NOT_OBSERVED = "not_observed"  # nothing in the run showed this value (for example: no backward call seen)
    CAPTURE_ERROR = "capture_error"  # a fault of ours, recorded instead of raised (P6)
    REDACTED = "redacted"  # masked, or left out on request


class CountedGap(StrEnum):
    """What a capture saw pass but could not record: counted per session, shown in coverage (EV-6)."""

    THREAD_NOT_COVERED = "thread_not_covered"
    FORKED_CHILD_NOT_COVERED = "forked_child_not_covered"
    SPAWNED_CHILD_NOT_COVERED = "spawned_child_not_covered"
    NOT_OBSERVABLE_COMPILED = "not_observable_compiled"
    NOT_OBSERVABLE_CUDA_GRAPH = "not_observable_cuda_graph"
    NOT_OBSERVABLE_IN_FLIGHT = "not_observable_in_flight"  # a collective that was never seen to complete (CA-31)
    DROPPED_QUEUE_FULL = "dropped_queue_full"
    OVER_BUDGET = "over_budget"
    LINK_AMBIGUOUS = "link_ambiguous"
    ROWS_NOT_ADDRESSED = "rows_not_addressed"  # a tensor with other rows than were declared (CP-27)
    CAPTURE_ERROR = "capture_error"
    DISK_FULL = "disk_full"
    STAGING_FAILED = "staging_failed"  # ranks whose evidence did not all reach the store (ST-17)


class RunGap(StrEnum):
    """Why a fact of a run, a session or an attachment has no value."""

    NO_BOOT_ID = "no_boot_id"  # the host shows no boot id
    NO_PID_NAMESPACE = "no_pid_namespace"  # the host does not show which container a process number belongs to
    NO_START_TICKS = "no_start_ticks"  # the host shows no start time of the process
    NO_LAUNCHER = "no_launcher"  # no scheduler or launcher gave this
    NOT_ENDED = "not_ended"  # still running, or killed before it could say
    NOT_COLLECTED = "not_collected"
    SHARED = "shared"  # the content belongs to every session that names its digest
    UNREADABLE = "unreadable"  # the file could not be read when it was registered
    REMOTE = "remote"  # a url: nothing was read
    FOLDED = "folded"  # its index holds the digests of its parts, and the row's metadata their fold
    CLOCK_STEPPED_BACK = "clock_stepped_back"


class ResourceGap(StrEnum):
    """Why a figure of a process tree, a cgroup or an accelerator has no value (RS-1, RS-2, RS-7, RS-12)."""

    NOT_STARTED = "not_started"  # there is no host yet
    HOST_EXITED = "host_exited"  # the host has ended, or its number belongs to another process by now
    IDENTITY_UNKNOWN = "identity_unknown"  # no start time or boot id: it cannot be told from a reused number
    UNREADABLE = "unreadable"  # a live process, or a file about it, that may not be read
    TABLE_HIDDEN = "table_hidden"  # not every process of the machine is listed (hidepid)
    TREE_CHANGED = "tree_changed"  # no two consecutive reads agreed
    UNSUPPORTED_PLATFORM = "unsupported_platform"
    UNSUPPORTED_ADAPTER = "unsupported_adapter"  # http, native plugin: there is no process of ours to look at
    NOT_COLLECTED = "not_collected"  # nobody asked for it
    HOST_DIFFERS = "host_differs"  # two snapshots of different hosts have no difference
    FELL = "fell"  # a sum that only grows has fallen: a descendant left the tree, or a counter was reset
    NO_CONTROLLER = "no_controller"  # no memory controller is mounted, or none serves this cgroup
    ROOT_CGROUP = "root_cgroup"  # the root counts the whole machine, so that it is nobody's
    NOT_A_MEMBER = "not_a_member"  # neither the runner nor the host is a direct member of the cgroup
    SCOPE_CHANGED = "scope_changed"  # another cgroup is there by now (device:inode), so that counts do not subtract
    NO_LIMIT = "no_limit"  # nothing sets one at the visible levels
    NO_COUNTER = "no_counter"  # this kernel does not keep it
    NOT_DELEGATED = "not_delegated"  # we may not make a cgroup below or beside ours
    STILL_POPULATED = "still_populated"  # the cgroup of an invocation could not be removed: it has members
    NO_ACCELERATOR = "no_accelerator"
