"""Harbor jobs as configurations and attempts; what is expected is the job's lock file (AT-16)."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from paritrace.attempts.accounts import Accounting, RunTotal
from paritrace.attempts.gaps import AttemptGap, Noted
from paritrace.attempts.importers.atif import Trajectory, is_trajectory, legacy_accounting
from paritrace.attempts.importers.collecting import Collecting, Named, recorded, typed
from paritrace.attempts.importers.harbor_format import (
    AgentResult,
    JobConfig,
    JobLock,
    JobResult,
    LockedTrial,
    TrialResult,
)
from paritrace.attempts.importers.harbor_trials import Judge, Trial, accounting_of, attempt_of, rewards_of
from paritrace.attempts.importers.reading import Evidence
from paritrace.attempts.manifest import Attempt, Configuration, Execution, Relation
from paritrace.attempts.origins import Origin
from paritrace.errors import EvidenceError

RESULT, LOCK, CONFIG, LOG, TRIAL_LOG = "result.json", "lock.json", "config.json", "job.log", "trial.log"
TRAJECTORY = Path("agent") / "trajectory.json"
_RETRYING = re.compile(r"Trial (\S+) failed with exception (\w+)\. Retrying")


class Job(Struct, frozen=True):
    """What a job's own files say."""

    folder: Path
    config: JobConfig | None
    lock: JobLock | None
    result: JobResult | None
    origin: Origin  # of the first of them that is there


def is_job(folder: Path) -> bool:
    """Says whether a folder looks like a Harbor job, and not like one of its trials, which has the same files."""
    if (folder / TRIAL_LOG).is_file():
        return False
    return (folder / CONFIG).is_file() and ((folder / LOCK).is_file() or (folder / RESULT).is_file())


def collect(named: Named, collecting: Collecting) -> None:
    """Adds a job, one of its trials, or an ATIF trajectory by itself, as one configuration.

    A job is a folder with `lock.json` or `result.json` and one folder per trial. One trial does not say of how many.

    Raises:
        EvidenceError: Refused, `not_a_job`: the path is none of the three.
    """
    evidence = collecting.evidence
    path = evidence.root(named.path)
    if path.is_file():
        _collect_trajectory(path, named, collecting)
        return
    if (path / TRIAL_LOG).is_file():
        job = Job(path.parent, None, None, None, Origin(source=evidence.name(path / RESULT)))
        trials, unread = _trials([path], evidence)
    else:
        job = _job(path, evidence)
        trials, unread = _trials(evidence.files(path), evidence)
    judge = Judge(
        harbor=None if job.lock is None else job.lock.harbor.version,
        binary=all(reward in (0.0, 1.0) for trial in trials for reward in rewards_of(trial.result).values()),
    )
    attempts = [
        attempt_of(trial, configuration=named.configuration, judge=judge, legacy=_legacy(trial, job, evidence))
        for trial in trials
    ]
    attempts += [_unread(trial, named.configuration) for trial in unread]
    attempts += _missing(job, attempts, configuration=named.configuration)
    collecting.add(_configuration(job, named.configuration, attempts, evidence), attempts)


def _collect_trajectory(path: Path, named: Named, collecting: Collecting) -> None:
    """Adds a trajectory by itself: it names no task and no verdict, and its totals are a diagnostic."""
    evidence = collecting.evidence
    document = evidence.json(path)
    value = None if document is None else document.value
    trajectory = None
    if document is not None and is_trajectory(value):
        trajectory = typed(value, Trajectory, evidence, Origin(source=document.source))
    if document is None or trajectory is None:
        raise _not_a_job(path, evidence)
    origin = Origin(source=document.source)
    name = trajectory.session_id or path.stem
    legacy = legacy_accounting(trajectory, origin)
    gap = AttemptGap.USAGE_ABSENT if legacy is None else AttemptGap.LEGACY_ONLY
    gaps = (Noted(reason=gap, origin=origin), *(legacy.gaps if legacy is not None else ()))
    attempt = Attempt(
        attempt_id=name,
        configuration_id=named.configuration,
        task_id=name,
        task_revision="unknown",
        accounting=legacy,
        fields={"agent": trajectory.agent.name or None, "model": trajectory.agent.model_name},
        content_sha256=document.sha256,
        gaps=gaps,
        origin=origin,
    )
    unverified = Noted(
        reason=AttemptGap.ATTEMPT_LIST_UNVERIFIED, detail="a trajectory by itself names no task", origin=origin
    )
    collecting.add(Configuration(id=named.configuration, gaps=(unverified,), origin=origin), [attempt])


def _not_a_job(path: Path, evidence: Evidence) -> EvidenceError:
    return EvidenceError(
        f"{path} is not a Harbor job: neither {LOCK} nor {RESULT} can be read there",
        code="not_a_job",
        fix="give the job's folder, the one that holds lock.json and a folder for each trial",
        details=tuple(str(refusal) for refusal in evidence.refusals),
    )


def _job(folder: Path, evidence: Evidence) -> Job:
    found: dict[str, tuple[object, Origin]] = {}
    if folder.is_dir():
        for name in (RESULT, LOCK, CONFIG):
            document = evidence.json(folder / name)
            if document is not None and document.value is not None:
                found[name] = (document.value, Origin(source=document.source))
    if RESULT not in found and LOCK not in found:
        raise _not_a_job(folder, evidence)
    origin = next(found[name][1] for name in (RESULT, LOCK, CONFIG) if name in found)
    return Job(
        folder=folder,
        config=typed(found[CONFIG][0], JobConfig, evidence, found[CONFIG][1]) if CONFIG in found else None,
        lock=typed(found[LOCK][0], JobLock, evidence, found[LOCK][1]) if LOCK in found else None,
        result=typed(found[RESULT][0], JobResult, evidence, found[RESULT][1]) if RESULT in found else None,
        origin=origin,
    )


class Unread(Struct, frozen=True):
    """A trial's folder without a result that can be read."""

    name: str
    task: str
    revision: str
    origin: Origin | None


def _trials(folders: Iterable[Path], evidence: Evidence) -> tuple[list[Trial], list[Unread]]:
    trials: list[Trial] = []
    unread: list[Unread] = []
    for folder in folders:
        if not folder.is_dir() or not ((folder / RESULT).exists() or (folder / CONFIG).exists()):
            continue
        locked = _locked(folder, evidence)
        document = evidence.json(folder / RESULT)
        result = None
        if document is not None and document.value is not None:
            result = typed(document.value, TrialResult, evidence, Origin(source=document.source))
        if document is None or result is None:
            task = locked.task.name if locked is not None else folder.name.rsplit("__", 1)[0]
            revision = (locked.task.digest if locked is not None else None) or "unknown"
            origin = None if document is None else Origin(source=document.source)
            unread.append(Unread(name=folder.name, task=task, revision=revision, origin=origin))
            continue
        trials.append(
            Trial(
                result=result,
                origin=Origin(source=document.source),
                sha256=document.sha256,
                task=locked.task.name if locked is not None else result.task_name,
                revision=(locked.task.digest if locked is not None else None) or result.task_checksum or "unknown",
            )
        )
    return trials, unread


def _locked(folder: Path, evidence: Evidence) -> LockedTrial | None:
    document = evidence.json(folder / LOCK)
    if document is None or document.value is None:
        return None
    return typed(document.value, LockedTrial, evidence, Origin(source=document.source))


def _legacy(trial: Trial, job: Job, evidence: Evidence) -> Accounting | None:
    path = job.folder / trial.result.trial_name / TRAJECTORY
    if trial.result.agent_result is not None and trial.result.agent_result.n_input_tokens is not None:
        return None
    document = evidence.json(path)
    if document is None or not is_trajectory(document.value):
        return None
    origin = Origin(source=document.source)
    trajectory = typed(document.value, Trajectory, evidence, origin)
    return None if trajectory is None else legacy_accounting(trajectory, origin)


def _unread(trial: Unread, configuration: str) -> Attempt:
    return Attempt(
        attempt_id=trial.name,
        configuration_id=configuration,
        task_id=trial.task,
        task_revision=trial.revision,
        relation=Relation.INDEPENDENT,
        execution=Execution.UNKNOWN,
        gaps=(
            Noted(
                reason=AttemptGap.RESULT_MISSING if trial.origin is None else AttemptGap.RESULT_INVALID,
                detail=f"the trial's folder is there, its {RESULT} is not" if trial.origin is None else "",
                origin=trial.origin,
            ),
        ),
        origin=trial.origin,
    )


def _missing(job: Job, attempts: list[Attempt], *, configuration: str) -> Iterable[Attempt]:
    """Returns the locked trials of which there is no folder: which of a task's they are, nobody can say."""
    if job.lock is None:
        return []
    have = Counter(attempt.task_id for attempt in attempts)
    planned: dict[str, list[LockedTrial]] = defaultdict(list)
    for trial in job.lock.trials:
        planned[trial.task.name].append(trial)
    job_name = job.config.job_name if job.config is not None else job.folder.name
    return [
        Attempt(
            attempt_id=f"{job_name}/{task}/missing {number}",
            configuration_id=configuration,
            task_id=task,
            task_revision=trials[0].task.digest or "unknown",
            present=False,
            relation=Relation.INDEPENDENT,
            gaps=(Noted(reason=AttemptGap.RESULT_MISSING, origin=job.origin),),
            origin=job.origin,
        )
        for task, trials in planned.items()
        for number in range(1, len(trials) - have[task] + 1)
    ]


def _configuration(job: Job, name: str, attempts: list[Attempt], evidence: Evidence) -> Configuration:
    return Configuration(
        id=name,
        attempts_complete=job.lock is not None,
        relation=Relation.INDEPENDENT,
        fields=_fields(job),
        totals=tuple(_totals(job, attempts)),
        gaps=tuple(_gaps(job, evidence)),
        origin=job.origin,
    )


def _fields(job: Job) -> dict[str, str | None]:
    config = job.config or JobConfig()
    locked = job.lock.harbor if job.lock is not None else None
    agent = config.agents[0] if config.agents else None
    return {
        "agent_config": recorded([one.name or one.import_path for one in config.agents] or None),
        "model": None if agent is None else agent.model_name,
        "harbor": None if locked is None else locked.version,
        "harbor_editable": None if locked is None else recorded(locked.is_editable),
        "harbor_commit": None if locked is None else locked.git_commit_hash,
        "concurrency": recorded(config.n_concurrent_trials),
        "timeout_multiplier": recorded(config.timeout_multiplier),
        "agent_timeout_multiplier": recorded(config.agent_timeout_multiplier),
        "verifier_timeout_multiplier": recorded(config.verifier_timeout_multiplier),
        "max_retries": recorded(config.retry.max_retries),
        "environment": config.environment.import_path or config.environment.type,
        "cpus": recorded(config.environment.override_cpus),
        "memory_mb": recorded(config.environment.override_memory_mb),
    }


def _totals(job: Job, attempts: list[Attempt]) -> Iterable[RunTotal]:
    if job.result is None:
        return
    stats = job.result.stats
    summed = AgentResult(
        n_input_tokens=stats.n_input_tokens,
        n_cache_tokens=stats.n_cache_tokens,
        n_output_tokens=stats.n_output_tokens,
        cost_usd=stats.cost_usd,
    )
    agents = sorted({attempt.fields.get("agent") or "the agent" for attempt in attempts})
    place = Origin(source=job.origin.source, pointer="/stats")
    yield RunTotal(
        id=job.result.id or job.folder.name,
        accounting=accounting_of(summed, place, model=None, agent_name=", ".join(agents), work=False),
    )


def _gaps(job: Job, evidence: Evidence) -> Iterable[Noted]:
    if job.lock is None:
        yield Noted(reason=AttemptGap.ATTEMPT_LIST_UNVERIFIED, detail=f"the job has no {LOCK}", origin=job.origin)
    if job.result is None or not job.result.stats.n_retries:
        return
    names = _retried(job, evidence)
    listed = ", ".join(f"{name} x{count}" if count > 1 else name for name, count in sorted(names.items()))
    yield Noted(
        reason=AttemptGap.RETRY_DESTROYED,
        count=job.result.stats.n_retries,
        detail="retried tries whose folders Harbor deleted" + (f": before {listed}" if listed else ""),
        origin=Origin(source=job.origin.source, pointer="/stats/n_retries"),
    )


def _retried(job: Job, evidence: Evidence) -> Counter[str]:
    """Returns which trials were tried again how often, as the job's log says."""
    lines = evidence.text_lines(job.folder / LOG)
    if lines is None:
        return Counter()
    return Counter(found.group(1) for line in lines[1] if (found := _RETRYING.search(line)) is not None)
