"""One attempt of `--details`: how it stopped, whether it was right, what it used: pure (AT-4, AT-17)."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import assert_never

from paritrace.attempts.accounts import Accounting, PricingBasis, PricingKind
from paritrace.attempts.facts import AttemptFacts
from paritrace.attempts.manifest import Evaluation, Evaluator, Resource
from paritrace.attempts.result import AttemptDetail, RequestDetail
from paritrace.attempts.states import judged
from paritrace.attempts.usage import COUNTERS


def detail_of(facts: AttemptFacts, evaluators: Sequence[Evaluator]) -> AttemptDetail:
    """Returns what is known of one attempt; `evaluators` are those of its configuration."""
    attempt = facts.attempt
    times = facts.times
    resources = [*attempt.resources, *(one for request in attempt.requests for one in request.resources)]
    return AttemptDetail(
        attempt_id=attempt.attempt_id,
        configuration_id=attempt.configuration_id,
        task_id=attempt.task_id,
        task_revision=attempt.task_revision,
        states={evaluator_name(one): str(judged(attempt, one).state) for one in evaluators or (None,)},
        execution=str(attempt.execution),
        stop=str(attempt.stop.kind),
        stop_word=attempt.stop.word,
        written_verdicts=tuple(_verdict(one) for one in attempt.evaluations),
        tokens={str(kind): figure for kind, figure in facts.tokens.items()},
        costs={
            basis_name(basis): one for basis, one in sorted(facts.costs.items(), key=lambda pair: basis_name(pair[0]))
        },
        inherited_tokens={str(kind): figure for kind, figure in facts.inherited.items()},
        legacy=tuple(text for one in facts.legacy for text in _legacy(one)),
        seconds={"task": times.task_seconds, "invocations_union": times.invocations.union_seconds},
        invocation_seconds=times.invocations.seconds,
        resources=tuple(_resource(one) for one in resources),
        requests=tuple(
            RequestDetail(one.request_id, str(one.state), str(one.execution), one.gaps) for one in facts.requests
        ),
        request_states=dict(sorted(Counter(str(one.state) for one in facts.requests).items())),
        unattributed=facts.between,
        retry_of=attempt.retry_of,
        gaps=dict(sorted(facts.gaps.items())),
        remarks=(*times.remarks, *_merged(facts)),
    )


def evaluator_name(evaluator: Evaluator | None) -> str:
    """Returns an evaluator as reports name it: its version belongs to it."""
    if evaluator is None:
        return "no evaluator"
    return evaluator.id if evaluator.version is None else f"{evaluator.id} {evaluator.version}"


def basis_name(basis: PricingBasis) -> str:
    """Returns a pricing basis as reports name it: by what, whose, and whether anybody checked it."""
    named = " ".join(part for part in (basis.id, basis.version) if part)
    checked = "" if basis.verified else "not verified"
    return ", ".join(part for part in (_priced(basis.kind), named, basis.currency, checked) if part)


def _priced(kind: PricingKind) -> str:
    match kind:
        case PricingKind.PROVIDER_REPORTED:
            return "reported by the provider"
        case PricingKind.RATE_CARD:
            return "by rate card"
        case PricingKind.ESTIMATED:
            return "estimated"
        case PricingKind.UNKNOWN:
            return "basis not recorded"
        case _:
            assert_never(kind)


def _verdict(evaluation: Evaluation) -> str:
    said = str(evaluation.verdict) if evaluation.score is None else f"score {evaluation.score}"
    left_out = "" if evaluation.counts else ", left out by its own tool"
    return f"{evaluator_name(evaluation.evaluator)}: {said}{left_out}"


def _legacy(accounting: Accounting) -> Iterable[str]:
    for usage in accounting.usage:
        counters = ((name, getattr(usage, name)) for name in COUNTERS)
        yield ", ".join(f"{name} {value:,}" for name, value in counters if value is not None) or "no counters"
    for cost in accounting.costs:
        yield f"{cost.amount} {cost.basis.currency}"


def _resource(resource: Resource) -> str:
    return f"{resource.scope} {resource.name} {resource.value}"


def _merged(facts: AttemptFacts) -> Iterable[str]:
    if facts.num_merged:
        yield f"{facts.num_merged} records were another sight of a call that is counted once"
