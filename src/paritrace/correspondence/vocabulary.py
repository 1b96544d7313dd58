"""The closed words of every comparison: why records are paired or not (CP-2 to CP-3c), whether they agree, verdicts."""

from enum import StrEnum


class Basis(StrEnum):
    """Why two records are paired."""

    SCOPE = "scope"
    EQUAL_SEQUENCE = "equal_sequence"
    INPUT_IDENTITY = "input_identity"
    BACKWARD_LINK = "backward_link"
    UNIQUE_KEY = "unique_key"
    INPUT_ANCHOR = "input_anchor"
    PARAMETER_ANCHOR = "parameter_anchor"
    BETWEEN_ANCHORS = "between_anchors"
    DATAFLOW = "dataflow"
    PARAMETER_NAME = "parameter_name"
    DECLARED = "declared"  # by a name that a map of the user makes alike (CP-5), whichever rule then paired it
    REVIEWED = "reviewed"  # by a person, in an alignment map (CP-14)


class Unpaired(StrEnum):
    """Why a record has no partner (CP-3c)."""

    UNEQUAL_BETWEEN_ANCHORS = "unequal_between_anchors"
    NO_ANCHOR = "no_anchor"
    ANCHOR_CROSSED = "anchor_crossed"
    SCOPE_UNPAIRED = "scope_unpaired"
    STREAM_MISSING = "stream_missing"  # no such step, micro-batch, phase or thread on the other side
    RANK_MISSING = "rank_missing"
    NOT_RECORDED = "not_recorded"  # the other side did not capture this level or step
    DROPPED = "dropped"
    FORWARD_UNPAIRED = "forward_unpaired"  # a backward call whose forward call is not paired
    LINK_AMBIGUOUS = "link_ambiguous"
    NOT_OBSERVABLE_COMPILED = "not_observable_compiled"
    NO_RECORDED_FLOW = "no_recorded_flow"
    REVIEW = "review"  # a review rejected its pair, gave its partner away, or keeps it so (CP-14)


class Agreement(StrEnum):
    """What two records say of one field that both have."""

    EQUAL = "equal"
    DIFFERENT = "different"
    NOT_COMPARABLE = "not_comparable"


class Verdict(StrEnum):
    """What the user's own rules say of a comparison; without rules it is `not_evaluated`."""

    NOT_EVALUATED = "not_evaluated"
    PASS = "pass"  # noqa: S105  a verdict
    FAIL = "fail"
    UNDETERMINED = "undetermined"
