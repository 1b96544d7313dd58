"""The state of an attempt under one evaluator, apart from how it stopped and what it used (AT-4): pure."""

from enum import StrEnum

from msgspec import Struct

from paritrace.attempts.manifest import Attempt, Evaluation, Evaluator, Execution, StopKind, VerdictKind

BROKEN_OFF = frozenset({StopKind.ERROR, StopKind.KILLED, StopKind.CANCELLED})


class AttemptState(StrEnum):
    """What is known of an attempt's outcome."""

    EVALUATED_PASS = "evaluated_pass"  # noqa: S105  a state
    EVALUATED_FAIL = "evaluated_fail"
    EVALUATED_SCORE = "evaluated_score"
    NOT_EVALUATED = "not_evaluated"
    EVALUATOR_ERROR = "evaluator_error"
    EXECUTION_FAILED = "execution_failed"
    MISSING = "missing"


EVALUATED = frozenset({AttemptState.EVALUATED_PASS, AttemptState.EVALUATED_FAIL, AttemptState.EVALUATED_SCORE})


class Judged(Struct, frozen=True):
    """An attempt's state under one evaluator; `value` is 1 for a pass, 0 for a fail, a score, None for no verdict.

    `conflict`: this evaluator said two different things of it, and neither is chosen.
    """

    state: AttemptState
    value: float | None = None
    conflict: bool = False


def judged(attempt: Attempt, evaluator: Evaluator | None) -> Judged:
    """Returns the state of an attempt.

    A verdict that counts decides, however the attempt stopped: a timed-out attempt may have passed. A verdict that its
    own tool leaves out (`counts` false) is a column and no more.
    """
    said = {_said(one): one for one in attempt.evaluations if one.evaluator == evaluator and one.counts}
    if not attempt.present:
        return Judged(AttemptState.MISSING)
    if len(said) > 1:
        return Judged(AttemptState.NOT_EVALUATED, conflict=True)
    for one in said.values():
        return _of_verdict(one)
    return Judged(AttemptState.EXECUTION_FAILED if execution_failed(attempt) else AttemptState.NOT_EVALUATED)


def execution_failed(attempt: Attempt) -> bool:
    """Whether the attempt's own execution is known to have broken off."""
    return attempt.execution in (Execution.FAILED, Execution.CANCELLED) or attempt.stop.kind in BROKEN_OFF


def evaluators_of(attempt: Attempt) -> set[Evaluator]:
    """Returns who judged an attempt, whether that counts or not."""
    return {one.evaluator for one in attempt.evaluations}


def _said(evaluation: Evaluation) -> tuple[VerdictKind, float | None]:
    return evaluation.verdict, evaluation.score


def _of_verdict(evaluation: Evaluation) -> Judged:
    match evaluation.verdict:
        case VerdictKind.PASS:
            return Judged(AttemptState.EVALUATED_PASS, 1.0)
        case VerdictKind.FAIL:
            return Judged(AttemptState.EVALUATED_FAIL, 0.0)
        case VerdictKind.SCORE:
            return Judged(AttemptState.EVALUATED_SCORE, evaluation.score)
        case VerdictKind.ERROR:
            return Judged(AttemptState.EVALUATOR_ERROR)
