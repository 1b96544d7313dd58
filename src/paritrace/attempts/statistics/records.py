"""Records of statistics: an estimate with its interval, or why there is none (AT-13)."""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from paritrace.statistics.records import Interval


class NotEstimable(StrEnum):
    """Why a statistic has no value; never 0.0 in its place."""

    NO_DATA = "no_data"
    TOO_FEW_TASKS = "too_few_tasks"  # fewer than two clusters
    ZERO_VARIANCE = "zero_variance"  # nothing varies, and no exact bound exists for it
    MIXED_EVALUATORS = "mixed_evaluators"
    NOT_INDEPENDENT = "not_independent"  # attempts are retries of each other, or nobody says that they are not
    NOT_ONE_ATTEMPT_PER_TASK = "not_one_attempt_per_task"
    NOT_BINARY = "not_binary"  # scores where passes and fails are needed
    TOO_FEW_ATTEMPTS = "too_few_attempts"  # no task has k attempts
    INCOMPLETE = "incomplete"
    NO_RANGE = "no_range"  # scores whose lowest and highest value nobody declared
    NOT_RECORDED = "not_recorded"
    NOT_COMPARABLE = "not_comparable"
    DIFFERENT_PRICING = "different_pricing"
    UNVERIFIED_PRICING = "unverified_pricing"


class Absent(Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="gap"):
    """A statistic that has no value: a gap with its reason, told from values by `kind`."""

    gap: NotEstimable
    detail: str | None = None


class Estimate(Struct, frozen=True, tag_field="kind", tag="estimate"):
    """An estimate; `standard_error` and `interval` may be gaps of their own. `facts`: what belongs to the method."""

    estimand: str
    value: float
    standard_error: float | Absent
    interval: Interval | Absent
    num_tasks: int
    num_attempts: int
    facts: Mapping[str, float] = {}
    remarks: tuple[str, ...] = ()


class TestResult(Struct, frozen=True):
    """A test: its p value, by what it was computed, over how many; `seed` None where nothing is drawn."""

    __test__ = False  # no test of pytest's

    name: str
    p_value: float
    num: int
    facts: Mapping[str, float] = {}
    seed: int | None = None
    p_holm: float | None = None  # adjusted over the comparisons of one report


class TaskOutcomes(Struct, frozen=True):
    """The attempts of one configuration at one task: values of those that were judged, and how many were not."""

    task: tuple[str, str]  # id, revision
    values: tuple[float, ...]
    num_missing: int = 0

    @property
    def num(self) -> int:
        """How many attempts there are."""
        return len(self.values) + self.num_missing
