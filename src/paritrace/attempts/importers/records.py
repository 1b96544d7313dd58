"""Run records (`run-record.jsonl`) as attempts: each record is one request, its end line accounts for it (AT-3).

The context's allowed keys `task_id`, `task_revision`, `attempt_id` and `configuration_id` say what a request belongs
to; where they were not recorded, a request is an attempt by itself. Both our own records (docs/formats) and those of
NeMo Fabric, whose `context` lies flat, are read.
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from paritrace.attempts.gaps import AttemptGap, Noted
from paritrace.attempts.importers.collecting import Collecting, Named, typed, unix_ns
from paritrace.attempts.importers.reading import Evidence
from paritrace.attempts.manifest import (
    Attempt,
    Configuration,
    Execution,
    Invocation,
    Relation,
    Request,
    RequestState,
    Resource,
    Stop,
    StopKind,
)
from paritrace.attempts.origins import Origin
from paritrace.evidence.plain_json import members
from paritrace.files import LOCAL

RECORD = "run-record.jsonl"
OBSERVED = ("resident_memory_bytes", "pss_bytes", "process_count", "cpu_time_seconds")
STATUSES = {"succeeded": Execution.SUCCEEDED, "failed": Execution.FAILED, "cancelled": Execution.CANCELLED}


class Start(Struct, frozen=True):
    request_id: str
    invocation_id: str = ""
    runtime_id: str = ""
    context: dict[str, Any] = {}
    harness: str | None = None
    agent_name: str | None = None
    names: dict[str, Any] = {}
    wall_ns: int | None = None


class End(Struct, frozen=True):
    request_id: str
    status: str | None = None
    error: dict[str, Any] | None = None
    elapsed_seconds: float | None = None
    stop: dict[str, Any] | None = None
    wall_ns: int | None = None
    resources: dict[str, Any] | None = None


class Recorded(Struct, frozen=True):
    """One record file: its start and end line, and where they stand."""

    source: str
    start: Start
    end: End | None
    origin: Origin
    ended: Origin | None


def collect(named: Named, collecting: Collecting) -> None:
    """Adds the records below a folder, or the one that was named; `configuration_id` in a context names its own."""
    evidence = collecting.evidence
    found: dict[str, dict[str, list[Recorded]]] = defaultdict(lambda: defaultdict(list))
    for path in _records(evidence.root(named.path)):
        record = _read(path, evidence)
        if record is not None:
            context = _context(record.start)
            configuration = context.get("configuration_id", named.configuration)
            found[configuration][context.get("attempt_id", record.start.invocation_id or path.parent.name)].append(
                record
            )
    for configuration, attempts in found.items():
        first = next(iter(attempts.values()))[0]
        collecting.add(
            _configuration(configuration, first.origin),
            [_attempt(name, records, configuration=configuration) for name, records in attempts.items()],
        )


def _records(path: Path) -> Iterator[Path]:
    if not LOCAL.is_folder(path):
        yield path
        return
    for entry in LOCAL.list_all(path):
        if entry.name == RECORD or LOCAL.is_folder(entry):
            yield from _records(entry)


def _read(path: Path, evidence: Evidence) -> Recorded | None:
    lines = evidence.lines(path)
    if lines is None:
        return None
    source, values = lines
    start: tuple[int, Start] | None = None
    end: tuple[int, End] | None = None
    for number, value in values:
        origin = Origin(source=source, line=number)
        word = members(value).get("line")
        if word == "start" and start is None:
            read = typed(value, Start, evidence, origin)
            start = start if read is None else (number, read)
        elif word == "end":
            last = typed(value, End, evidence, origin)
            end = end if last is None else (number, last)
    if start is None:
        evidence.refuse(path, "has no start line of a run record")
        return None
    return Recorded(
        source=source,
        start=start[1],
        end=None if end is None else end[1],
        origin=Origin(source=source, line=start[0]),
        ended=None if end is None else Origin(source=source, line=end[0]),
    )


def _context(start: Start) -> dict[str, str]:
    """Returns the context's values that were recorded: ours lie under `values`, NeMo Fabric's lie flat."""
    values = members(start.context.get("values", start.context))
    return {key: value for key, value in values.items() if isinstance(value, str) and value}


def _configuration(name: str, origin: Origin) -> Configuration:
    return Configuration(
        id=name,
        attempts_complete=False,
        relation=Relation.UNKNOWN,
        gaps=(Noted(reason=AttemptGap.ATTEMPT_LIST_UNVERIFIED, detail="records do not say how many were planned"),),
        origin=origin,
    )


def _attempt(name: str, records: list[Recorded], *, configuration: str) -> Attempt:
    first, last = records[0], records[-1]
    context = _context(first.start)
    return Attempt(
        attempt_id=name,
        configuration_id=configuration,
        task_id=context.get("task_id", first.start.request_id),
        task_revision=context.get("task_revision", "unknown"),
        execution=_execution(last.end),
        stop=_stop(last),
        requests=tuple(_request(record) for record in records),
        fields=_fields(first.start),
        origin=first.origin,
    )


def _fields(start: Start) -> dict[str, str | None]:
    harness = start.harness if start.harness is not None else start.names.get("harness")
    agent = start.agent_name if start.agent_name is not None else start.names.get("agent")
    return {
        "harness": harness if isinstance(harness, str) else None,
        "agent": agent if isinstance(agent, str) else None,
    }


def _request(record: Recorded) -> Request:
    end = record.end
    elapsed = None if end is None else end.elapsed_seconds
    return Request(
        request_id=record.start.request_id,
        record=record.source,
        state=RequestState.STARTED_ONLY if end is None else RequestState.RECORD_ONLY,
        execution=_execution(end),
        invocation=Invocation(
            started_unix_ns=record.start.wall_ns,
            ended_unix_ns=None if end is None else end.wall_ns,
            elapsed_seconds=elapsed if elapsed is not None and elapsed >= 0 else None,
            origin=record.ended or record.origin,
        ),
        resources=tuple(_resources(record)),
        origin=record.origin,
    )


def _resources(record: Recorded) -> Iterator[Resource]:
    """Yields what the end line observed of the process tree; a gap in its place is nothing observed."""
    found = members(record.end.resources) if record.end is not None else {}
    observed_at = found.get("observed_at")
    for name in OBSERVED:
        value = found.get(name)
        if record.ended is not None and isinstance(value, int | float):
            yield Resource(
                scope=f"process tree of {record.start.runtime_id or 'the host'}",
                name=name,
                value=float(value),
                observed_unix_ns=unix_ns(observed_at) if isinstance(observed_at, str) else None,
                origin=Origin(source=record.source, line=record.ended.line, pointer=f"/resources/{name}"),
            )


def _execution(end: End | None) -> Execution:
    if end is None:
        return Execution.UNKNOWN
    if end.status is None:
        return Execution.FAILED if end.error is not None else Execution.UNKNOWN
    return STATUSES.get(end.status, Execution.UNKNOWN)


def _stop(record: Recorded) -> Stop:
    end = record.end
    if end is None or record.ended is None:
        return Stop(kind=StopKind.UNKNOWN, word="interrupted; cause unknown", origin=record.origin)
    if end.stop is None:
        return Stop(kind=StopKind.FINISHED) if end.status == "succeeded" else Stop(origin=record.ended)
    cause, reason = str(end.stop.get("cause", "")), end.stop.get("reason")
    seconds = end.stop.get("timeout_seconds")
    place = Origin(source=record.source, line=record.ended.line, pointer="/stop")
    if reason == "timeout":
        limit = float(seconds) if isinstance(seconds, int | float) and seconds >= 0 else None
        return Stop(kind=StopKind.TIMEOUT, word=cause, limit_seconds=limit, origin=place)
    kind = {"agent_exhausted_budget": StopKind.LIMIT, "sandbox_failed": StopKind.KILLED}.get(cause, StopKind.ERROR)
    kind = StopKind.CANCELLED if end.status == "cancelled" else kind
    return Stop(kind=kind, word=cause, origin=place)
