"""Records of a summary and of a comparison of attempts: what `--json` prints and every report reads (AT-17)."""

from enum import StrEnum

from msgspec import Struct

from paritrace.attempts.accounts import PricingBasis
from paritrace.attempts.figures import Figure, Sum
from paritrace.attempts.gaps import Noted
from paritrace.attempts.manifest import Evaluator, Primary
from paritrace.attempts.origins import Source
from paritrace.attempts.statistics.durations import Incidence
from paritrace.attempts.statistics.pass_at_k import PassAtK
from paritrace.attempts.statistics.records import Absent, Estimate, TestResult
from paritrace.correspondence.vocabulary import Agreement, Verdict
from paritrace.evidence.coverage import Coverage, CoverageState
from paritrace.statistics.records import Interval

SUMMARY_FORMAT = "paritrace-attempts-summary"
COMPARISON_FORMAT = "paritrace-attempts-comparison"
VERSION = "1.0"


class Warned(StrEnum):
    """What a reader has to know before a figure is used."""

    MIXED_EVALUATORS = "mixed_evaluators"  # inside a configuration: no combined pass fraction
    DIFFERENT_EVALUATORS = "different_evaluators"  # across configurations
    DIFFERENT_PRICING = "different_pricing"
    UNVERIFIED_PRICING = "unverified_pricing"
    FIELDS_DIFFER = "fields_differ"  # inside a configuration
    FIELDS_DIFFER_ACROSS = "fields_differ_across"
    SCOPES_DO_NOT_FIT = "scopes_do_not_fit"
    CONFLICTING_RECORDS = "conflicting_records"
    REPEATED_RECORDS = "repeated_records"
    RETRIES_DESTROYED = "retries_destroyed"
    LEGACY_COUNTERS = "legacy_counters"
    UNATTRIBUTED = "unattributed"
    SOURCE_CHANGED = "source_changed"


class Caution(Struct, frozen=True):
    """A warning: its code, a sentence, and the configurations or attempts that it touches."""

    code: Warned
    sentence: str
    about: tuple[str, ...] = ()


class Fractions(Struct, frozen=True, tag_field="kind", tag="fractions"):
    """How many attempts passed, with three denominators that always stand together (AT-12).

    `evaluated_only` is None where nothing was evaluated. `worst_case`: all that have no verdict failed, or all passed;
    these bounds speak of these attempts, `interval` (Wilson, of the evaluated ones) only where there is one attempt a
    task.
    """

    passes: int
    num_evaluated: int
    num_attempts: int
    evaluated_only: float | None
    missing_as_failed: float | None
    worst_case: tuple[float, float] | None
    interval: Interval | Absent


class OfEvaluator(Struct, frozen=True):
    """What one evaluator says of a configuration. `fractions` is a gap for scores."""

    evaluator: Evaluator | None
    states: dict[str, int]
    fractions: Fractions | Absent
    mean_over_tasks: Estimate | Absent
    mean_over_attempts: Estimate | Absent
    pass_at_k: tuple[PassAtK, ...] | Absent
    time_to_pass: Incidence | Absent


class MatrixCell(Struct, frozen=True):
    """How many attempts two evaluators both judged, and on how many they agree (D-20)."""

    first: Evaluator
    second: Evaluator
    num_both: int
    num_agree: int


class CostSum(Struct, frozen=True):
    """A sum under one pricing basis, never under two. `per_attempt` is a gap unless every amount is known."""

    basis: PricingBasis
    sum: Sum
    per_attempt: Estimate | Absent


class CostPerPass(Struct, frozen=True):
    """Cost per passed attempt. `at_least` is true unless cost and verdicts are both complete (AT-13).

    `interval` is of the population of tasks, and a gap where `at_least`.
    """

    basis: PricingBasis
    amount: float
    at_least: bool
    interval: Interval | Absent


class Durations(Struct, frozen=True):
    """Times in three scopes that are never combined (AT-11). Sums are over attempts, in seconds.

    `invocation_union_seconds`: what the invocations of an attempt cover together, overlapping ones once. Attempts that
    ran beside each other are each counted, for their clocks may be of several machines. `num_overlapping`: invocations
    that ran beside another one of their own attempt.
    """

    task_seconds: Sum
    invocation_union_seconds: Sum
    num_invocations: int
    num_overlapping: int
    num_resources: int
    num_not_fitting: int  # attempts whose scopes contradict each other


class Reconciled(Struct, frozen=True):
    """One figure of the run's own total against the sum over attempts (AT-15). `unattributed` = total - attempts."""

    total_id: str
    figure: str
    total: Figure
    attempts: Sum
    unattributed: float | None  # None where one of the two is not known


class OfConfiguration(Struct, frozen=True):
    """Everything about one configuration, coverage first."""

    id: str
    attempts: Coverage  # found of planned
    attempts_state: CoverageState
    num_tasks: int
    num_retried: int  # attempts that another one stands in for: their spend counts, their outcome does not
    stops: dict[str, int]
    executions: dict[str, int]
    evaluators: tuple[OfEvaluator, ...]
    combined: bool  # False: several evaluators, so there is no combined pass fraction
    matrix: tuple[MatrixCell, ...]
    requests: dict[str, int]
    requests_state: CoverageState
    tokens: dict[str, Sum]
    inherited_tokens: dict[str, Sum]  # history that forks replayed: in no other sum
    costs: tuple[CostSum, ...]
    repriced: CostSum | None
    cost_per_pass: tuple[CostPerPass, ...]
    durations: Durations
    fields: dict[str, tuple[str | None, ...]]  # every value seen; null is not recorded
    differing_fields: tuple[str, ...]
    reconciled: tuple[Reconciled, ...]
    gaps: dict[str, int]
    noted: tuple[Noted, ...]  # what belongs to the configuration and to no attempt


class RequestDetail(Struct, frozen=True):
    request_id: str
    state: str
    execution: str
    gaps: tuple[Noted, ...]


class AttemptDetail(Struct, frozen=True):
    """One attempt in `--details`: how it stopped, whether it was right, what it used, each by itself."""

    attempt_id: str
    configuration_id: str
    task_id: str
    task_revision: str
    states: dict[str, str]  # by evaluator
    execution: str
    stop: str
    stop_word: str
    written_verdicts: tuple[str, ...]  # what evaluators wrote, whether it counts or not
    tokens: dict[str, Figure]
    costs: dict[str, Figure]
    inherited_tokens: dict[str, Figure]
    legacy: tuple[str, ...]  # diagnostics in words; they are in no total
    seconds: dict[str, float | None]
    invocation_seconds: tuple[float | None, ...]
    resources: tuple[str, ...]
    requests: tuple[RequestDetail, ...]
    request_states: dict[str, int]
    unattributed: dict[str, float]
    retry_of: str | None
    gaps: dict[str, int]
    remarks: tuple[str, ...]


class Summary(Struct, frozen=True):
    """What a manifest's attempts say (AT-17). No clock, nothing in an order that chance gave."""

    format: str
    version: str
    paritrace: str
    scipy: str
    manifest_sha256: str
    importer: str
    sources: tuple[Source, ...]
    configurations: tuple[OfConfiguration, ...]
    warnings: tuple[Caution, ...]
    noted: tuple[Noted, ...]
    complete: bool
    verdict: Verdict = Verdict.NOT_EVALUATED
    rules: tuple["RuleOutcome", ...] = ()
    details: tuple[AttemptDetail, ...] | None = None


class RuleOutcome(Struct, frozen=True):
    """What became of one rule of a gate file."""

    name: str
    verdict: Verdict
    sentence: str


class Claim(StrEnum):
    """How much the evidence supports, from the lowest rung (AT-14)."""

    NOT_COMPARABLE = "not_comparable"
    UNDETERMINED = "undetermined"
    CONDITIONAL = "difference, conditional on evaluated attempts"
    ROBUST = "difference robust to missing evidence"


class Matching(Struct, frozen=True):
    """Tasks of two configurations by (id, revision); nothing is dropped silently (AT-10)."""

    matched: tuple[tuple[str, str], ...]
    baseline_only: tuple[tuple[str, str], ...]
    candidate_only: tuple[tuple[str, str], ...]
    revision_differs: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]  # id, baseline's, candidate's


class FieldAgreement(Struct, frozen=True):
    """One field of the two configurations, in the words of every comparison."""

    name: str
    agreement: Agreement
    baseline: tuple[str | None, ...]
    candidate: tuple[str | None, ...]
    reason: str = ""


class Tipping(Struct, frozen=True):
    """How few of the missing attempts would turn a statement (AT-14). `num` None: no completion of them does."""

    statement: str
    configuration: str
    num: int | None
    num_missing: int
    sentence: str


class CostDifference(Struct, frozen=True, tag_field="kind", tag="cost_difference"):
    """Mean cost per attempt, baseline minus candidate, over matched tasks, under one basis that both have (AT-8)."""

    basis: PricingBasis
    estimate: Estimate | Absent


class PairOf(Struct, frozen=True):
    """The comparison of two configurations."""

    baseline: str
    candidate: str
    evaluator: Evaluator | None
    primary: bool
    matching: Matching
    fields: tuple[FieldAgreement, ...]
    difference: Estimate | Absent
    bounds: tuple[float, float] | Absent
    worst_case_interval: Interval | Absent
    anytime_interval: Interval | Absent
    tests: tuple[TestResult, ...]
    correlation: float | Absent
    minimum_detectable: float | Absent
    claim: Claim
    claim_reasons: tuple[str, ...]
    exploratory: bool  # no primary analysis was declared for this pair
    tipping: tuple[Tipping, ...]
    lost: dict[str, tuple[str, ...]]  # by configuration: the attempts at matched tasks without a verdict
    cost_difference: CostDifference | Absent
    warnings: tuple[Caution, ...]


class AttemptsComparison(Struct, frozen=True):
    """What `attempts compare` says."""

    format: str
    version: str
    paritrace: str
    scipy: str
    manifest_sha256: str
    primary: Primary | None
    pairs: tuple[PairOf, ...]
    num_comparisons: int  # p values are adjusted over so many (Holm)
    summary: Summary
    verdict: Verdict = Verdict.NOT_EVALUATED
    rules: tuple[RuleOutcome, ...] = ()
