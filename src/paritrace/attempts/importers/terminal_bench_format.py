"""What terminal-bench writes of a run, as far as it is read: `results.json`, `tb.lock`, `run_metadata.json`.

After `terminal_bench/harness/models.py` and `utils/run_lock.py` of terminal-bench 0.2.18.
"""

from msgspec import Struct

from paritrace.evidence.plain_json import members

RESULTS, LOCK, METADATA = "results.json", "tb.lock", "run_metadata.json"


class Trial(Struct, frozen=True):
    """One element of `results`. `is_resolved` None: nobody judged; terminal-bench counts it as failed."""

    trial_name: str
    task_id: str
    is_resolved: bool | None = None
    failure_mode: str = "unset"
    total_input_tokens: int | None = None
    total_output_tokens: int | None = None
    trial_started_at: str | None = None
    trial_ended_at: str | None = None
    agent_started_at: str | None = None
    agent_ended_at: str | None = None


class DatasetLock(Struct, frozen=True):
    name: str | None = None
    version: str | None = None
    task_ids: list[str] = []


class HarnessLock(Struct, frozen=True):
    version: str | None = None


class AgentLock(Struct, frozen=True):
    name: str | None = None
    model_name: str | None = None


class RunConfig(Struct, frozen=True):
    n_concurrent_trials: int | None = None
    n_attempts: int | None = None
    global_timeout_multiplier: float | None = None
    global_agent_timeout_sec: float | None = None


class Lock(Struct, frozen=True):
    """`tb.lock`."""

    harness: HarnessLock = HarnessLock()
    dataset: DatasetLock = DatasetLock()
    agent: AgentLock = AgentLock()
    run_config: RunConfig = RunConfig()


class Metadata(Struct, frozen=True):
    """`run_metadata.json`."""

    run_id: str = ""
    task_ids: list[str] | None = None
    n_attempts: int | None = None
    n_concurrent_trials: int | None = None
    dataset_name: str | None = None
    dataset_version: str | None = None
    agent_name: str | None = None
    model_name: str | None = None
    commit_hash: str | None = None


def is_results(value: object) -> bool:
    """Says whether a parsed document looks like a run's results."""
    return isinstance(members(value).get("results"), list) and "n_resolved" in members(value)
