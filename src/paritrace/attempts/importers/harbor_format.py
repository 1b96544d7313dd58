"""The parts of a Harbor job that are read (harbor 0.26: job and trial `result.json`, `config.json`, `lock.json`)."""

from typing import Any

from msgspec import Struct


class AgentResult(Struct, frozen=True):
    """`n_input_tokens` includes what was read from a cache, by Harbor's own definition."""

    n_input_tokens: int | None = None
    n_cache_tokens: int | None = None
    n_output_tokens: int | None = None
    cost_usd: float | None = None


class ModelInfo(Struct, frozen=True):
    name: str | None = None
    provider: str | None = None


class AgentInfo(Struct, frozen=True):
    name: str | None = None
    version: str | None = None
    model_info: ModelInfo | None = None


class VerifierResult(Struct, frozen=True):
    rewards: dict[str, Any] | None = None


class Policy(Struct, frozen=True):
    has_valid_reward: bool | None = None


class ExceptionInfo(Struct, frozen=True):
    exception_type: str
    policy: Policy | None = None


class Span(Struct, frozen=True):
    started_at: str | None = None
    finished_at: str | None = None


class TrialResult(Struct, frozen=True):
    """`result.json` of a trial. `reward_valid` is what Harbor counts; older versions do not write it."""

    trial_name: str
    task_name: str
    id: str = ""
    task_checksum: str | None = None
    agent_info: AgentInfo | None = None
    agent_result: AgentResult | None = None
    verifier_result: VerifierResult | None = None
    exception_info: ExceptionInfo | None = None
    started_at: str | None = None
    finished_at: str | None = None
    agent_execution: Span | None = None
    reward_valid: bool | None = None


class LockedTask(Struct, frozen=True):
    name: str
    digest: str | None = None


class LockedTrial(Struct, frozen=True):
    """`lock.json` of a trial, and an element of a job's."""

    task: LockedTask


class LockedHarbor(Struct, frozen=True):
    version: str | None = None
    git_commit_hash: str | None = None
    is_editable: bool | None = None


class JobLock(Struct, frozen=True):
    trials: list[LockedTrial]
    harbor: LockedHarbor = LockedHarbor()


class EvalStats(Struct, frozen=True):
    n_trials: int | None = None


class JobStats(Struct, frozen=True):
    n_retries: int | None = None
    n_input_tokens: int | None = None
    n_cache_tokens: int | None = None
    n_output_tokens: int | None = None
    cost_usd: float | None = None
    evals: dict[str, EvalStats] = {}


class JobResult(Struct, frozen=True):
    """`result.json` of a job."""

    id: str = ""
    n_total_trials: int | None = None
    stats: JobStats = JobStats()


class Retry(Struct, frozen=True):
    max_retries: int | None = None


class Environment(Struct, frozen=True):
    type: str | None = None
    import_path: str | None = None
    override_cpus: int | float | None = None
    override_memory_mb: int | None = None


class Agent(Struct, frozen=True):
    name: str | None = None
    import_path: str | None = None
    model_name: str | None = None


class JobConfig(Struct, frozen=True):
    """`config.json` of a job."""

    job_name: str = ""
    n_attempts: int | None = None
    n_concurrent_trials: int | None = None
    timeout_multiplier: float | None = None
    agent_timeout_multiplier: float | None = None
    verifier_timeout_multiplier: float | None = None
    retry: Retry = Retry()
    environment: Environment = Environment()
    agents: list[Agent] = []
