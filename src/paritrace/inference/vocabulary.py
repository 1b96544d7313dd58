"""The closed sets of inference evidence: kinds, bases and reasons (IN-1, IN-7, IN-10, IN-26)."""

from enum import StrEnum


class Domain(StrEnum):
    """Where an activity ran."""

    GPU = "gpu"
    RUNTIME = "runtime"  # a call of the device's runtime or driver, on the host: what launches
    CPU = "cpu"
    UNKNOWN = "unknown"


class Attribution(StrEnum):
    """Whether the collector itself named an iteration; what we derive is a `Link` (IN-7)."""

    LINKED = "linked"
    UNRESOLVED = "unresolved"


class ActivityKind(StrEnum):
    """Names of kinds that we write; a collector may write others."""

    KERNEL = "kernel"
    MEMCPY = "memcpy"
    MEMSET = "memset"
    RUNTIME = "runtime"
    DRIVER = "driver"
    GRAPH_LEVEL = "graph_level"  # one row for a whole graph: busy time with gaps that nobody recorded (IN-26)


class Component(StrEnum):
    """The components every append speaks of; further ones have names of their own (IN-20)."""

    ENGINE_ADAPTER = "engine_adapter"
    TRACE_COLLECTOR = "trace_collector"


class Basis(StrEnum):
    """By what an activity is linked to its iteration, strongest first (IN-7)."""

    EXACT_ID = "exact_id"
    SAME_THREAD_RANGE = "same_thread_range"
    STEP_RANGE_ANCHOR = "step_range_anchor"  # the range is a profiler's or an engine's, corresponding by its name


class LinkReason(StrEnum):
    """Why an activity has no iteration (IN-7)."""

    NO_SCOPE = "no_scope"
    NO_KEY = "no_key"
    SENTINEL = "sentinel"  # 0, -1, 2^32-1, null and "" are no ids
    NO_CANDIDATE = "no_candidate"
    NO_LAUNCH_RECORD = "no_launch_record"
    OUTSIDE_EVERY_RANGE = "outside_every_range"
    AMBIGUOUS = "ambiguous"
    IDS_DISAGREE = "ids_disagree"
    DEVICE_DIFFERS = "device_differs"
    DANGLING_ITERATION = "dangling_iteration"  # a collector named an iteration that nobody reported


class LossStatus(StrEnum):
    """What a source says of its own losses: nothing lost is not the same as nothing said (IN-10)."""

    REPORTED = "reported"
    ZERO_REPORTED = "zero_reported"
    NOT_REPORTED = "not_reported"


class LossReason(StrEnum):
    """Why evidence is not there."""

    TORN_TAIL = "torn_tail"  # the writer was killed inside a record
    OUT_OF_RANGE = "out_of_range"  # the profiler dropped records with times outside its window
    STOPPED_EARLY = "stopped_early"  # the profiler ran out of buffers
    DROPPED = "dropped"  # the source says that it dropped records, and no more
    BLOCKLISTED = "blocklisted"  # the source was set not to record these
    TRUNCATED = "truncated"  # the file ends in the middle
    INVALID = "invalid"  # bytes that are no record of the format
    UNSUPPORTED = "unsupported"  # recorded in the source, of a kind that is not read
    NO_TIME = "no_time"  # a record without a usable time
    NOT_COLLECTED = "not_collected"
    UNKNOWN = "unknown"  # the source tells no reason
