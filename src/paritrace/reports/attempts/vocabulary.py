"""The words a person reads for the closed lists of attempts (AT-4, AT-5, AT-14, AT-21)."""

from paritrace.attempts.gaps import AttemptGap
from paritrace.attempts.manifest import RequestState
from paritrace.attempts.result import Claim
from paritrace.attempts.states import AttemptState

GAPS: dict[AttemptGap, str] = {
    AttemptGap.RESULT_MISSING: "an expected result is not there",
    AttemptGap.RECORD_MISSING: "an expected request record is not there",
    AttemptGap.RECORD_TRUNCATED: "a record begins and never ends, or its last line is torn",
    AttemptGap.RESULT_INVALID: "evidence is there and cannot be read: damaged, foreign, another digest",
    AttemptGap.IDENTITY_MISMATCH: "the id inside a file is not the one that the manifest names",
    AttemptGap.IDENTITY_CONFLICT: "one id, contradicting records: none is chosen",
    AttemptGap.RECORD_RESULT_CONFLICT: "a record disagrees with its result, which wins",
    AttemptGap.RETRY_DESTROYED: "the tool deleted what an earlier try left; its spend is unknown",
    AttemptGap.USAGE_ABSENT: "no usage was reported",
    AttemptGap.USAGE_FIELD_ABSENT: "a counter was not reported",
    AttemptGap.USAGE_IMPLAUSIBLE: "zero tokens, and something shows that work was done",
    AttemptGap.CONVENTION_UNKNOWN: "whether a counter includes another one is not declared",
    AttemptGap.CONVENTION_VIOLATED: "a part is larger than the counter that is said to include it",
    AttemptGap.COST_ABSENT: "no cost was reported",
    AttemptGap.PRICING_UNVERIFIED: "nothing says by what an amount was priced",
    AttemptGap.MODEL_UNPRICED: "the rate card has no rate for it",
    AttemptGap.DURATION_ABSENT: "this scope of time was not recorded",
    AttemptGap.REQUEST_LIST_UNVERIFIED: "nobody declared the list of requests complete",
    AttemptGap.ATTEMPT_LIST_UNVERIFIED: "nobody declared the list of attempts complete",
    AttemptGap.LEGACY_ONLY: "only a counter without declared source, scope or coverage",
    AttemptGap.RAISED_WITHOUT_ACCOUNTING: "it ended by an error that left no accounting",
}

STATES: dict[AttemptState, str] = {
    AttemptState.EVALUATED_PASS: "an evaluator let it pass",
    AttemptState.EVALUATED_FAIL: "an evaluator let it fail",
    AttemptState.EVALUATED_SCORE: "an evaluator gave it a score",
    AttemptState.NOT_EVALUATED: "it is there, and nobody judged it",
    AttemptState.EVALUATOR_ERROR: "the evaluator itself failed",
    AttemptState.EXECUTION_FAILED: "it broke off, and no verdict counts",
    AttemptState.MISSING: "it was planned, and nothing of it was found",
}

REQUEST_STATES: dict[RequestState, str] = {
    RequestState.RESULT: "its full result is there",
    RequestState.RECORD_ONLY: "its record ends, and no usable result is there",
    RequestState.STARTED_ONLY: "its record begins and never ends",
    RequestState.MISSING: "nothing of it is there",
    RequestState.UNREADABLE: "its evidence is there and cannot be used",
    RequestState.UNEXPECTED: "seen, and not in the declared list",
}

CLAIMS: dict[Claim, str] = {
    Claim.NOT_COMPARABLE: "no common task, or judged by different evaluators",
    Claim.UNDETERMINED: "the analysis does not exclude zero",
    Claim.CONDITIONAL: "it does, on the attempts that were evaluated",
    Claim.ROBUST: "it does too if every missing verdict spoke against the difference",
}
