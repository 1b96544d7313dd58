"""Trajectories in Harbor's interchange format (ATIF v1.4 to v1.8): steps, calls, and what they count (AT-7, AT-16)."""

from typing import Any

from msgspec import Struct

from paritrace.attempts.accounts import Accounting, AccountingSource, Usage
from paritrace.attempts.gaps import AttemptGap, Noted
from paritrace.attempts.origins import Origin
from paritrace.evidence.plain_json import members

INHERITED = "an earlier trajectory"  # ATIF says that a step was copied, not from where


class StepMetrics(Struct, frozen=True):
    """`cached_tokens` is a part of `prompt_tokens`, by ATIF's own definition."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None


class FinalMetrics(Struct, frozen=True):
    total_prompt_tokens: int | None = None
    total_completion_tokens: int | None = None
    total_cached_tokens: int | None = None
    total_cost_usd: float | None = None


class ToolCall(Struct, frozen=True):
    function_name: str
    tool_call_id: str = ""
    arguments: Any = None


class ObservationResult(Struct, frozen=True):
    source_call_id: str | None = None
    content: Any = None


class Observation(Struct, frozen=True):
    results: list[ObservationResult] = []


class Step(Struct, frozen=True):
    step_id: int
    source: str
    message: Any = None
    model_name: str | None = None
    tool_calls: list[ToolCall] | None = None
    observation: Observation | None = None
    metrics: StepMetrics | None = None
    is_copied_context: bool | None = None


class Agent(Struct, frozen=True):
    name: str = ""
    version: str | None = None
    model_name: str | None = None


class Trajectory(Struct, frozen=True):
    schema_version: str
    steps: list[Step]
    agent: Agent = Agent()
    session_id: str = ""
    final_metrics: FinalMetrics | None = None


def is_trajectory(value: object) -> bool:
    """Says whether a parsed document calls itself an ATIF trajectory."""
    return str(members(value).get("schema_version", "")).startswith("ATIF-")


def legacy_accounting(trajectory: Trajectory, origin: Origin) -> Accounting | None:
    """Returns what a trajectory's totals count, as a diagnostic: nobody declares their scope or coverage (AT-3).

    Steps that were copied from an earlier trajectory are apart: their counts are inherited, not this run's.
    """
    metrics = trajectory.final_metrics
    usages = list(_inherited(trajectory, origin))
    gaps: tuple[Noted, ...] = ()
    if metrics is not None:
        place = Origin(source=origin.source, pointer=origin.pointer + "/final_metrics")
        usages.insert(0, totals_usage(metrics, place, model=trajectory.agent.model_name))
        gaps = violations(metrics, place)
    if not usages:
        return None
    return Accounting(source=AccountingSource.LEGACY, usage=tuple(usages), gaps=gaps, origin=origin)


def totals_usage(metrics: FinalMetrics, origin: Origin, *, model: str | None) -> Usage:
    """Returns the totals of a trajectory: its prompt tokens include the cached ones, as ATIF defines."""
    return Usage(
        model=model,
        input_tokens=_whole(metrics.total_prompt_tokens),
        cached_input_tokens=_whole(metrics.total_cached_tokens),
        output_tokens=_whole(metrics.total_completion_tokens),
        input_includes_cache=True,
        work_shown=True,
        origin=origin,
    )


def violations(metrics: FinalMetrics, origin: Origin) -> tuple[Noted, ...]:
    """Returns the gap of totals whose cached tokens are more than the prompt that is to include them."""
    cached, prompt = metrics.total_cached_tokens, metrics.total_prompt_tokens
    if cached is None or prompt is None or cached <= prompt:
        return ()
    detail = f"{cached:,} cached tokens of {prompt:,} prompt tokens: they cannot be a part of them, as ATIF defines"
    return (Noted(reason=AttemptGap.CONVENTION_VIOLATED, detail=detail, origin=origin),)


def _inherited(trajectory: Trajectory, origin: Origin) -> "list[Usage]":
    return [
        Usage(
            model=step.model_name,
            input_tokens=_whole(step.metrics.prompt_tokens),
            cached_input_tokens=_whole(step.metrics.cached_tokens),
            output_tokens=_whole(step.metrics.completion_tokens),
            input_includes_cache=True,
            inherited_from=INHERITED,
            origin=Origin(source=origin.source, pointer=f"{origin.pointer}/steps/{index}/metrics"),
        )
        for index, step in enumerate(trajectory.steps)
        if step.is_copied_context and step.metrics is not None
    ]


def _whole(count: int | None) -> int | None:
    return count if count is not None and count >= 0 else None
