"""terminal-bench runs as attempts; what is expected is the run's lock: its task ids times its attempts (AT-16)."""

from collections import Counter
from collections.abc import Iterable

from paritrace.attempts.accounts import Accounting, AccountingSource, Usage
from paritrace.attempts.gaps import AttemptGap, Noted
from paritrace.attempts.importers.collecting import Collecting, Named, recorded, seconds_between, unix_ns
from paritrace.attempts.importers.terminal_bench_format import LOCK, METADATA, Lock, Metadata, Trial
from paritrace.attempts.importers.terminal_bench_runs import Run, planned, runs_at
from paritrace.attempts.manifest import (
    Attempt,
    Configuration,
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

WORKED_SECONDS = 60.0  # an agent that ran so long worked: zero tokens are not believed (D-03)
FINISHED = frozenset({"none", "unset", ""})
OF_THE_EVALUATOR = frozenset({"parse_error", "test_timeout"})
STOPS = {
    "agent_timeout": StopKind.TIMEOUT,
    "context_length_exceeded": StopKind.LIMIT,
    "output_length_exceeded": StopKind.LIMIT,
}


def collect(named: Named, collecting: Collecting) -> None:
    """Adds a run's folder, or its `results.json`, as one configuration; a folder of runs is one configuration too."""
    evidence = collecting.evidence
    runs = runs_at(evidence.root(named.path), evidence)
    if runs:
        attempts = [attempt for run in runs for attempt in _attempts(run, configuration=named.configuration)]
        collecting.add(_configuration(runs, named.configuration), attempts)


def _configuration(runs: list[Run], name: str) -> Configuration:
    first = runs[0]
    return Configuration(
        id=name,
        attempts_complete=all(planned(run) is not None for run in runs),
        relation=Relation.INDEPENDENT,
        fields=_fields(first),
        gaps=tuple(
            Noted(
                reason=AttemptGap.ATTEMPT_LIST_UNVERIFIED,
                detail=f"neither {LOCK} nor {METADATA} names the tasks",
                origin=Origin(source=run.source),
            )
            for run in runs
            if planned(run) is None
        ),
        origin=Origin(source=first.source),
    )


def _fields(run: Run) -> dict[str, str | None]:
    """Returns what has to be alike between runs of one configuration; None is not recorded (D-19)."""
    lock, metadata = run.lock or Lock(), run.metadata or Metadata()
    return {
        "agent": lock.agent.name or metadata.agent_name,
        "model": lock.agent.model_name or metadata.model_name,
        "dataset_version": lock.dataset.version or metadata.dataset_version,
        "harness_version": lock.harness.version,
        "harness_commit": None if metadata.commit_hash == "unknown" else metadata.commit_hash,
        "concurrency": recorded(lock.run_config.n_concurrent_trials or metadata.n_concurrent_trials),
        "timeout_multiplier": recorded(lock.run_config.global_timeout_multiplier),
        "agent_timeout_seconds": recorded(lock.run_config.global_agent_timeout_sec),
    }


def _attempts(run: Run, *, configuration: str) -> Iterable[Attempt]:
    fields, revision = _fields(run), _revision(run)
    name = (run.metadata.run_id if run.metadata is not None else "") or run.folder.name
    for trial, origin in run.trials:
        yield Attempt(
            attempt_id=f"{name}/{trial.trial_name}",
            configuration_id=configuration,
            task_id=trial.task_id,
            task_revision=revision,
            relation=Relation.INDEPENDENT,
            execution=_execution(trial),
            stop=_stop(trial, origin, run),
            evaluations=tuple(_evaluations(trial, origin)),
            duration_seconds=seconds_between(trial.trial_started_at, trial.trial_ended_at),
            accounting=_accounting(trial, origin, model=fields["model"]),
            invocations=tuple(_invocations(trial, origin)),
            fields=fields,
            origin=origin,
        )
    yield from _missing(run, name, configuration=configuration, revision=revision)


def _revision(run: Run) -> str:
    lock, metadata = run.lock or Lock(), run.metadata or Metadata()
    name = lock.dataset.name or metadata.dataset_name
    version = lock.dataset.version or metadata.dataset_version
    return f"{name or 'data set'} {version}" if version else "unknown"


def _missing(run: Run, name: str, *, configuration: str, revision: str) -> Iterable[Attempt]:
    plan = planned(run)
    if plan is None:
        return
    have = Counter(trial.task_id for trial, _ in run.trials)
    origin = Origin(source=run.source)
    for task in plan[0]:
        for number in range(1, plan[1] - have[task] + 1):
            yield Attempt(
                attempt_id=f"{name}/{task}/missing {number}",
                configuration_id=configuration,
                task_id=task,
                task_revision=revision,
                present=False,
                relation=Relation.INDEPENDENT,
                gaps=(Noted(reason=AttemptGap.RESULT_MISSING, origin=origin),),
                origin=origin,
            )


def _execution(trial: Trial) -> Execution:
    ended = trial.failure_mode in FINISHED or trial.failure_mode in OF_THE_EVALUATOR
    return Execution.SUCCEEDED if ended else Execution.FAILED


def _stop(trial: Trial, origin: Origin, run: Run) -> Stop:
    place = Origin(source=origin.source, pointer=origin.pointer + "/failure_mode")
    mode = trial.failure_mode
    if mode in FINISHED or mode in OF_THE_EVALUATOR:
        return Stop(kind=StopKind.FINISHED, word="" if mode in FINISHED else mode, origin=place)
    kind = STOPS.get(mode, StopKind.ERROR)
    seconds = run.lock.run_config.global_agent_timeout_sec if run.lock is not None else None
    return Stop(kind=kind, word=mode, limit_seconds=seconds if kind is StopKind.TIMEOUT else None, origin=place)


def _evaluations(trial: Trial, origin: Origin) -> Iterable[Evaluation]:
    evaluator = Evaluator(id="terminal-bench tests")
    if trial.is_resolved is not None:
        verdict = VerdictKind.PASS if trial.is_resolved else VerdictKind.FAIL
        place = Origin(source=origin.source, pointer=origin.pointer + "/is_resolved")
        yield Evaluation(evaluator=evaluator, verdict=verdict, origin=place)
    elif trial.failure_mode in OF_THE_EVALUATOR:
        place = Origin(source=origin.source, pointer=origin.pointer + "/failure_mode")
        yield Evaluation(evaluator=evaluator, verdict=VerdictKind.ERROR, origin=place)


def _accounting(trial: Trial, origin: Origin, *, model: str | None) -> Accounting | None:
    if trial.total_input_tokens is None and trial.total_output_tokens is None:
        return None
    seconds = seconds_between(trial.agent_started_at, trial.agent_ended_at)
    worked = trial.is_resolved is True or (seconds is not None and seconds > WORKED_SECONDS)
    usage = Usage(
        model=model,
        input_tokens=_whole(trial.total_input_tokens),
        output_tokens=_whole(trial.total_output_tokens),
        work_shown=worked,
        origin=Origin(source=origin.source, pointer=origin.pointer + "/total_input_tokens"),
    )
    return Accounting(source=AccountingSource.ADAPTER_REPORTED, usage=(usage,), origin=origin)


def _invocations(trial: Trial, origin: Origin) -> Iterable[Invocation]:
    if trial.agent_started_at is not None or trial.agent_ended_at is not None:
        yield Invocation(
            started_unix_ns=unix_ns(trial.agent_started_at),
            ended_unix_ns=unix_ns(trial.agent_ended_at),
            origin=Origin(source=origin.source, pointer=origin.pointer + "/agent_started_at"),
        )


def _whole(count: int | None) -> int | None:
    return count if count is not None and count >= 0 else None
