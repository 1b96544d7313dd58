"""Why a figure of inference evidence is not known, from one closed list (P1)."""

from enum import StrEnum


class InferenceGap(StrEnum):
    """Why there is no value."""

    NO_ACTIVITIES = "no_activities"  # nothing to take a fraction of
    NOT_MONOTONIC = "not_monotonic"  # only a monotonic clock gives a duration (IN-3)
    NO_TIMES = "no_times"
    NO_INDEX = "no_index"
    NOT_ASKED = "not_asked"
    NOT_TOLD = "not_told"  # the source does not say it
    MEMBERSHIP_UNKNOWN = "membership_unknown"  # no source says which iterations a request took part in
    NO_SHARED_CLOCK = "no_shared_clock"
    COUNT_UNKNOWN = "count_unknown"  # the source gives no number
