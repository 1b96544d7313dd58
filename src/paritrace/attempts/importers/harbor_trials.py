"""One Harbor trial as an attempt: how it ended, what its verifier wrote, what it used (AT-4, AT-16)."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from paritrace.attempts.accounts import Accounting, AccountingSource, Cost, PricingBasis, PricingKind, Usage
from paritrace.attempts.gaps import AttemptGap, Noted
from paritrace.attempts.importers.collecting import seconds_between, unix_ns
from paritrace.attempts.importers.harbor_format import AgentResult, TrialResult
from paritrace.attempts.manifest import (
    Attempt,
    Evaluation,
    Evaluator,
    Execution,
    Invocation,
    Relation,
    Stop,
    StopKind,
    VerdictKind,
)
from paritrace.attempts.origins import Origin

OF_THE_VERIFIER = frozenset(
    {
        "RewardFileEmptyError",
        "RewardFileNotFoundError",
        "VerifierOutputParseError",
        "VerifierTimeoutError",
        "AddTestsDirError",
        "DownloadVerifierDirError",
    }
)
"""Exceptions that say nothing of the attempt: the judging failed."""
STOPS = {"AgentTimeoutError": StopKind.TIMEOUT, "CancelledError": StopKind.CANCELLED}


class Trial(Struct, frozen=True):
    """A trial's result beside what its folder and the job say of it."""

    result: TrialResult
    origin: Origin
    sha256: str
    task: str
    revision: str


class Judge(Struct, frozen=True):
    """What evaluates in one job: Harbor's version, and whether every reward is 0 or 1."""

    harbor: str | None
    binary: bool


def rewards_of(result: TrialResult) -> Mapping[str, float]:
    """Returns the numbers that the verifier wrote."""
    if result.verifier_result is None:
        return {}
    rewards = result.verifier_result.rewards or {}
    return {name: float(value) for name, value in rewards.items() if isinstance(value, bool | int | float)}


def attempt_of(trial: Trial, *, configuration: str, judge: Judge, legacy: Accounting | None) -> Attempt:
    """Returns a trial as an attempt; `legacy` is what its trajectory counts, where the trial itself counts nothing."""
    result, origin = trial.result, trial.origin
    accounting = _accounting(result, origin)
    raised = result.exception_info is not None and result.exception_info.exception_type not in OF_THE_VERIFIER
    return Attempt(
        attempt_id=result.trial_name,
        configuration_id=configuration,
        task_id=trial.task,
        task_revision=trial.revision,
        relation=Relation.INDEPENDENT,
        execution=Execution.FAILED if raised else Execution.SUCCEEDED,
        stop=_stop(result, origin),
        evaluations=tuple(_evaluations(result, origin, judge)),
        duration_seconds=seconds_between(result.started_at, result.finished_at),
        accounting=accounting if accounting is not None else legacy,
        invocations=tuple(_invocations(result, origin)),
        fields=_fields(result),
        content_sha256=trial.sha256,
        gaps=tuple(_gaps(result, origin, legacy=legacy if accounting is None else None)),
        origin=origin,
    )


def counted(result: TrialResult) -> bool:
    """Says whether Harbor counts the reward of a trial among its `n_trials`."""
    if result.reward_valid is not None:
        return result.reward_valid
    info = result.exception_info
    if info is None:
        return True
    return info.policy is not None and info.policy.has_valid_reward is True


def _evaluations(result: TrialResult, origin: Origin, judge: Judge) -> Iterable[Evaluation]:
    info = result.exception_info
    if info is not None and info.exception_type in OF_THE_VERIFIER:
        yield Evaluation(
            evaluator=_evaluator("reward", judge), verdict=VerdictKind.ERROR, origin=_at(origin, "/exception_info")
        )
        return
    for name, reward in rewards_of(result).items():
        verdict = VerdictKind.SCORE
        if judge.binary:
            verdict = VerdictKind.PASS if reward == 1 else VerdictKind.FAIL
        yield Evaluation(
            evaluator=_evaluator(name, judge),
            verdict=verdict,
            score=reward if verdict is VerdictKind.SCORE else None,
            counts=counted(result),
            origin=_at(origin, f"/verifier_result/rewards/{name}"),
        )


def _evaluator(reward: str, judge: Judge) -> Evaluator:
    name = "harbor verifier" if reward == "reward" else f"harbor verifier/{reward}"
    return Evaluator(id=name, version=None if judge.harbor is None else f"harbor {judge.harbor}")


def _stop(result: TrialResult, origin: Origin) -> Stop:
    info = result.exception_info
    if info is None:
        return Stop(kind=StopKind.FINISHED)
    if info.exception_type in OF_THE_VERIFIER:
        return Stop(kind=StopKind.FINISHED, word=info.exception_type, origin=_at(origin, "/exception_info"))
    kind = STOPS.get(info.exception_type, StopKind.ERROR)
    return Stop(kind=kind, word=info.exception_type, origin=_at(origin, "/exception_info"))


def usage_of(agent: AgentResult, origin: Origin, *, model: str | None, work: bool) -> Usage:
    """Returns Harbor's counters: its input includes what was read from a cache."""
    return Usage(
        model=model,
        input_tokens=_whole(agent.n_input_tokens),
        cached_input_tokens=_whole(agent.n_cache_tokens),
        output_tokens=_whole(agent.n_output_tokens),
        input_includes_cache=True,
        work_shown=work,
        origin=origin,
    )


def accounting_of(agent: AgentResult, origin: Origin, *, model: str | None, agent_name: str, work: bool) -> Accounting:
    """Returns what a trial or a job says it used; who priced it, Harbor does not say."""
    usage = usage_of(agent, origin, model=model, work=work)
    costs: tuple[Cost, ...] = ()
    if agent.cost_usd is not None and agent.cost_usd >= 0:
        basis = PricingBasis(kind=PricingKind.UNKNOWN, id=f"reported by {agent_name} to harbor")
        costs = (Cost(amount=agent.cost_usd, basis=basis, origin=_at(origin, "/cost_usd")),)
    return Accounting(source=AccountingSource.ADAPTER_REPORTED, usage=(usage,), costs=costs, origin=origin)


def _accounting(result: TrialResult, origin: Origin) -> Accounting | None:
    agent = result.agent_result
    if agent is None or not _says_anything(agent):
        return None
    info = result.agent_info
    name = (info.name if info is not None else None) or "the agent"
    model = _model(result)
    work = result.exception_info is None
    return accounting_of(agent, _at(origin, "/agent_result"), model=model, agent_name=name, work=work)


def _says_anything(agent: AgentResult) -> bool:
    return any(value is not None for value in (agent.n_input_tokens, agent.n_output_tokens, agent.cost_usd))


def _model(result: TrialResult) -> str | None:
    info = result.agent_info
    return info.model_info.name if info is not None and info.model_info is not None else None


def _fields(result: TrialResult) -> dict[str, str | None]:
    info = result.agent_info
    return {
        "agent": None if info is None else info.name,
        "agent_version": None if info is None else info.version,
        "model": _model(result),
    }


def _invocations(result: TrialResult, origin: Origin) -> Iterable[Invocation]:
    span = result.agent_execution
    if span is not None:
        yield Invocation(
            started_unix_ns=unix_ns(span.started_at),
            ended_unix_ns=unix_ns(span.finished_at),
            origin=_at(origin, "/agent_execution"),
        )


def _gaps(result: TrialResult, origin: Origin, *, legacy: Accounting | None) -> Iterable[Noted]:
    if legacy is not None:
        yield Noted(reason=AttemptGap.LEGACY_ONLY, detail="only its trajectory counts tokens", origin=legacy.origin)
        yield from legacy.gaps
    if result.exception_info is not None and result.agent_result is None:
        yield Noted(reason=AttemptGap.RAISED_WITHOUT_ACCOUNTING, origin=_at(origin, "/exception_info"))


def _whole(count: int | None) -> int | None:
    return count if count is not None and count >= 0 else None


def _at(origin: Origin, pointer: str) -> Origin:
    return Origin(source=origin.source, pointer=origin.pointer + pointer)
