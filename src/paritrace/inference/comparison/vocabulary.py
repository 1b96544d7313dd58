"""The closed sets of a comparison of inference runs (IN-17, IN-27)."""

from enum import StrEnum


class FieldClass(StrEnum):
    """What a condition of a run is to a comparison."""

    IDENTITY = "identity"  # has to be the same, or the runs are of two things
    LAUNCH = "launch"  # a covariate: how it was started; may be what is compared
    OBSERVATION = "observation"  # where and when it was seen: differs between any two runs
    LABEL = "label"  # names for people
    UNCLASSIFIED = "unclassified"  # nobody said what it is: a difference blocks


class Compatibility(StrEnum):
    """What a field says of whether two arms can be compared."""

    COMPATIBLE = "compatible"
    UNVERIFIED = "unverified"
    INCOMPATIBLE = "incompatible"


class Stated(StrEnum):
    """How a condition is known, strongest first; only the first two are knowledge."""

    OBSERVED = "observed"
    REPORTED = "reported"
    DECLARED = "declared"
    INFERRED = "inferred"
    REDACTED = "redacted"


class Design(StrEnum):
    """How runs of the two arms belong together."""

    PAIRED_BLOCKS = "paired_blocks"
    INDEPENDENT = "independent"


class Scale(StrEnum):
    """On what scale two arms are compared."""

    LOG_RATIO = "log_ratio"  # candidate / baseline, by logarithms: of geometric means
    MEANS_RATIO = "means_ratio"  # candidate / baseline, of arithmetic means
    DIFFERENCE = "difference"  # candidate - baseline


class CompareGap(StrEnum):
    """Why a figure of a comparison has no value."""

    INCOMPATIBLE = "incompatible"
    NO_REQUESTS = "no_requests"
    NOT_RECORDED = "not_recorded"  # the source of the run does not have it
    QUANTILE_IN_FAILURES = "quantile_in_failures"  # so many requests failed that the quantile is one of theirs
    INTERVAL_UNKNOWN = "interval_unknown"  # nobody says over how long requests were offered
    TOO_FEW_RUNS = "too_few_runs"
    ZERO_IN_ARM = "zero_in_arm"  # a ratio to or of zero
    ZERO_VARIANCE = "zero_variance"
    UNBOUNDED = "unbounded"  # the baseline's mean is not told from 0: a ratio to it may be anything
    UNDEFINED_IN_ARM = "undefined_in_arm"  # a run of the arm has no value: it is not left out in silence
    CLIENT_SATURATED = "client_saturated"  # the client could not keep up: its latencies are its own (IN-27)
    UNKNOWN_METRIC = "unknown_metric"


class GateVerdict(StrEnum):
    """What became of a gate."""

    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    NOT_EVALUABLE = "not_evaluable"


class GateReason(StrEnum):
    """Why a gate is not evaluable."""

    NO_FIGURE = "no_figure"
    DECISION_UNSTABLE = "decision_unstable"  # without one run, or one block, it would be decided the other way
    MISSING_DECIDES = "missing_decides"  # it depends on what became of requests whose outcome is not known
    TOO_FEW_RUNS = "too_few_runs"
    INCOMPATIBLE = "incompatible"
