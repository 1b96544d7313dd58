"""Inspect logs as configurations and attempts; what is expected is sample ids times epochs (AT-16)."""

from collections.abc import Iterable

from msgspec.structs import replace

from paritrace.attempts.accounts import RunTotal
from paritrace.attempts.gaps import AttemptGap, Noted
from paritrace.attempts.importers.collecting import MOST_PLANNED, Collecting, Named, recorded
from paritrace.attempts.importers.inspect_format import EvalSpec, Header
from paritrace.attempts.importers.inspect_logs import Log, OneSample, logs_of, read_log
from paritrace.attempts.importers.inspect_retries import Found, resolved
from paritrace.attempts.importers.inspect_samples import accounting_of, attempt_id, attempt_of, decided, task_id
from paritrace.attempts.manifest import Attempt, Configuration, Execution, Relation, Stop, StopKind
from paritrace.attempts.origins import Origin

STOPPED = {"cancelled": StopKind.CANCELLED, "error": StopKind.ERROR, "started": StopKind.KILLED}


def collect(named: Named, collecting: Collecting) -> None:
    """Adds what a log, or a folder of logs, holds as one configuration."""
    evidence = collecting.evidence
    logs: list[Log] = []
    found: list[Found] = []
    for path in logs_of(evidence.root(named.path), evidence):
        read = read_log(path, evidence)
        if read is None:
            continue
        log, samples = read
        logs.append(log)
        found += _attempts(log, samples, configuration=named.configuration)
    if logs:
        collecting.add(_configuration(logs, named.configuration), resolved(found))


def _configuration(logs: list[Log], name: str) -> Configuration:
    specs = [log.header.eval for log in logs]
    return Configuration(
        id=name,
        attempts_complete=all(_planned(log.header) is not None for log in logs),
        relation=Relation.INDEPENDENT,
        fields=_fields(specs[0], logs[0].header),
        totals=tuple(_total(logs)),
        gaps=tuple(gap for log in logs for gap in _inventory_gaps(log)),
        origin=logs[0].origin,
    )


def _fields(spec: EvalSpec, header: Header) -> dict[str, str | None]:
    """Returns what has to be alike inside a configuration; null is not recorded (AT-10)."""
    return {
        "model": spec.model,
        "inspect_ai": spec.packages.get("inspect_ai"),
        "solver": recorded([step.solver for step in header.plan.steps] or None),
        "task_args": recorded(spec.task_args or None),
        "generate_config": recorded(spec.model_generate_config or None),
        "message_limit": recorded(spec.config.message_limit),
        "token_limit": recorded(spec.config.token_limit),
        "time_limit": recorded(spec.config.time_limit),
        "working_limit": recorded(spec.config.working_limit),
        "max_samples": recorded(spec.config.max_samples),
        "max_connections": recorded(spec.config.max_connections),
    }


def _total(logs: list[Log]) -> Iterable[RunTotal]:
    """Yields what the logs say that they used in all, together: the attempts of all of them are held against it."""
    found = [
        accounting
        for log in logs
        if (accounting := accounting_of(log.header.stats.model_usage, origin=log.origin, pointer="/stats/model_usage"))
        is not None
    ]
    if len(found) == len(logs):
        whole = replace(
            found[0],
            usage=tuple(usage for one in found for usage in one.usage),
            costs=tuple(cost for one in found for cost in one.costs),
        )
        spec = logs[0].header.eval
        name = spec.eval_id or spec.run_id or logs[0].origin.source
        yield RunTotal(id=name if len(logs) == 1 else f"{len(logs)} logs", accounting=whole)


def _inventory_gaps(log: Log) -> Iterable[Noted]:
    if _planned(log.header) is None:
        yield Noted(
            reason=AttemptGap.ATTEMPT_LIST_UNVERIFIED,
            detail="the log names neither its sample ids nor how many there are, or more than can be",
            origin=Origin(source=log.origin.source, member=log.origin.member, pointer="/eval/dataset"),
        )


def _planned(header: Header) -> list[str | int] | None:
    """Returns the ids of the planned samples, `#n` where only their number is known; None where neither is.

    A list that epochs multiply beyond belief is none either.
    """
    epochs = _epochs(header)
    ids = header.eval.dataset.sample_ids
    if ids is not None:
        return list(ids) if len(ids) * epochs <= MOST_PLANNED else None
    count = _num_samples(header, epochs)
    if count is None or not 0 <= count * epochs <= MOST_PLANNED:
        return None
    return [f"#{number}" for number in range(1, count + 1)]


def _num_samples(header: Header, epochs: int) -> int | None:
    dataset, limit = header.eval.dataset, header.eval.config.limit
    if header.results is not None and header.results.total_samples is not None:
        return header.results.total_samples // epochs
    if dataset.samples is None:
        return None
    return min(dataset.samples, limit) if isinstance(limit, int) else dataset.samples


def _epochs(header: Header) -> int:
    return max(1, header.eval.config.epochs or 1)


def _attempts(log: Log, samples: Iterable[OneSample], *, configuration: str) -> Iterable[Found]:
    """Yields the attempts of one log: those that are there, then those that were planned and are not."""
    header = log.header
    attempts: list[Attempt] = []
    rest: list[tuple[str, int, str]] = []
    for one in samples:  # a sample's events are dropped with it: memory is that of the attempts
        attempts.append(attempt_of(one.placed, header, configuration=configuration))
        rest.append((str(one.placed.sample.id), one.placed.sample.epoch, one.placed.sha256))
    for attempt, (sample, epoch, sha256) in zip(decided(attempts), rest, strict=True):
        yield _found(attempt, header, sample=sample, epoch=epoch, sha256=sha256)
    have = {(sample, epoch) for sample, epoch, _ in rest}
    for sample, epoch in _not_there(header, have):
        missing = _missing(log, sample, epoch, configuration=configuration)
        yield _found(missing, header, sample=sample, epoch=epoch, sha256=log.sha256)


def _found(attempt: Attempt, header: Header, *, sample: str, epoch: int, sha256: str) -> Found:
    spec = header.eval
    return Found(
        attempt=attempt,
        key=(spec.task_id or spec.task, sample, epoch),
        run=spec.run_id,
        created=spec.created or "",
        sample_sha256=sha256,
    )


def _not_there(header: Header, have: set[tuple[str, int]]) -> list[tuple[str, int]]:
    """Returns the planned samples and epochs that were not found; by number where the log names no ids."""
    samples = _planned(header)
    if not samples:
        return []
    planned = [(str(sample), epoch) for epoch in range(1, _epochs(header) + 1) for sample in samples]
    if header.eval.dataset.sample_ids is None:
        return planned[len(have) :]
    return [place for place in planned if place not in have]


def _missing(log: Log, sample: str, epoch: int, *, configuration: str) -> Attempt:
    header = log.header
    return Attempt(
        attempt_id=attempt_id(header, sample, epoch),
        configuration_id=configuration,
        task_id=task_id(header, sample),
        task_revision=str(header.eval.task_version),
        present=False,
        relation=Relation.INDEPENDENT,
        execution=Execution.UNKNOWN,
        stop=Stop(kind=STOPPED.get(header.status, StopKind.UNKNOWN), word=f"the log's status: {header.status}"),
        content_sha256=log.sha256,
        gaps=(Noted(reason=AttemptGap.RESULT_MISSING, origin=log.origin),),
        origin=log.origin,
    )
