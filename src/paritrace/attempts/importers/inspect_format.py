"""The parts of an Inspect log that are read (UKGovernmentBEIS/inspect_ai, log version 2; version 1 in its header)."""

from typing import Any

from msgspec import UNSET, Struct, UnsetType


class ModelUsage(Struct, frozen=True):
    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    input_tokens_cache_read: int | None = None
    input_tokens_cache_write: int | None = None
    reasoning_tokens: int | None = None
    total_cost: float | None = None


class Dataset(Struct, frozen=True):
    name: str | None = None
    samples: int | None = None
    sample_ids: list[str | int] | None = None


class Config(Struct, frozen=True):
    epochs: int | None = None
    limit: int | list[int] | None = None
    message_limit: int | None = None
    token_limit: int | None = None
    time_limit: float | None = None
    working_limit: float | None = None
    max_samples: int | None = None
    max_connections: int | None = None


class Scorer(Struct, frozen=True):
    name: str


class EvalSpec(Struct, frozen=True):
    """`eval` of a log."""

    task: str
    model: str
    dataset: Dataset = Dataset()
    config: Config = Config()
    task_id: str = ""
    run_id: str = ""
    eval_id: str = ""
    created: str | None = None
    task_version: str | int = 0
    task_args: dict[str, Any] = {}
    packages: dict[str, str] = {}
    model_generate_config: dict[str, Any] = {}
    scorers: list[Scorer] | None = None


class Results(Struct, frozen=True):
    total_samples: int | None = None
    completed_samples: int | None = None


class Stats(Struct, frozen=True):
    model_usage: dict[str, ModelUsage] = {}


class Step(Struct, frozen=True):
    solver: str = ""


class Plan(Struct, frozen=True):
    steps: list[Step] = []


class Header(Struct, frozen=True):
    """Everything of a log but its samples. A log that was killed has no results and no status."""

    eval: EvalSpec
    version: int = 1
    status: str = "started"
    plan: Plan = Plan()
    results: Results | None = None
    stats: Stats = Stats()


class Score(Struct, frozen=True):
    value: Any = None


class SampleLimit(Struct, frozen=True):
    type: str = ""
    limit: float | None = None


class SampleError(Struct, frozen=True):
    message: str = ""


class ToolCall(Struct, frozen=True):
    id: str = ""
    function: str = ""
    arguments: Any = None


class Message(Struct, frozen=True):
    role: str = ""
    content: Any = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None


class Choice(Struct, frozen=True):
    message: Message = Message()


class Output(Struct, frozen=True):
    usage: ModelUsage | None = None
    choices: list[Choice] = []


class Sample(Struct, frozen=True):
    id: str | int
    epoch: int
    scores: dict[str, Score] | None = None
    model_usage: dict[str, ModelUsage] = {}
    error: SampleError | None = None
    error_retries: list[SampleError] | None = None
    limit: SampleLimit | None = None
    invalidation: Any = None
    started_at: str | None = None
    completed_at: str | None = None
    total_time: float | None = None
    working_time: float | None = None
    uuid: str | None = None
    events: list[Any] | UnsetType = UNSET


class ModelEvent(Struct, frozen=True):
    """An event of one model call. `cache` is `read` where the answer came from Inspect's own cache: none was used."""

    event: str
    uuid: str | None = None
    model: str = ""
    output: Output | None = None
    error: str | None = None
    cache: str | None = None
    retries: int | None = None
    timestamp: str | None = None
    completed: str | None = None
    working_time: float | None = None
    pending: bool | None = None


class ToolEvent(Struct, frozen=True):
    """An event of one tool call; without `completed` and `error` its result was never recorded."""

    event: str
    function: str
    arguments: Any = None
    result: Any = None
    error: Any = None
    completed: str | None = None
