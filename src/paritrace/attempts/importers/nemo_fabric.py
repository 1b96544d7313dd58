"""NeMo Fabric results as attempts: one full result is one request; what it used is read from the file itself (AT-3).

A result names no task. The sample bundles that NeMo Fabric publishes of its Harbor runs do, and are read too.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from paritrace.attempts.accounts import Accounting, AccountingSource
from paritrace.attempts.gaps import AttemptGap, Noted
from paritrace.attempts.importers.atif import FinalMetrics, totals_usage, violations
from paritrace.attempts.importers.collecting import Collecting, Named, recorded, typed, unix_ns
from paritrace.attempts.importers.reading import Document, Evidence
from paritrace.attempts.manifest import (
    Attempt,
    Configuration,
    Evaluation,
    Evaluator,
    Execution,
    Invocation,
    Relation,
    Request,
    RequestState,
    Resource,
    Stop,
    StopKind,
    VerdictKind,
)
from paritrace.attempts.origins import Origin
from paritrace.evidence.plain_json import members

BUNDLE, TELEMETRY = "result-summary.json", "telemetry-summary.json"
BUNDLE_SCHEMA = "fabric.harbor.sample/"
STATUSES = {
    "succeeded": Execution.SUCCEEDED,
    "failed": Execution.FAILED,
    "cancelled": Execution.CANCELLED,
}
OBSERVED = ("resident_memory_bytes", "process_count", "cpu_time_seconds")


class Fault(Struct, frozen=True):
    code: str = ""


class Snapshot(Struct, frozen=True):
    observed_at: str | None = None
    resident_memory_bytes: float | None = None
    process_count: float | None = None
    cpu_time_seconds: float | None = None


class Stats(Struct, frozen=True):
    elapsed_seconds: float | None = None


class Event(Struct, frozen=True):
    kind: str = ""
    timestamp_millis: int | None = None


class Result(Struct, frozen=True):
    """The parts of a RunResult that are read beside its usage."""

    request_id: str
    status: str
    runtime_id: str = ""
    invocation_id: str = ""
    agent_name: str | None = None
    harness: str | None = None
    adapter_id: str | None = None
    error: Fault | None = None
    resource_snapshot: Snapshot | None = None
    system_stats: Stats | None = None
    events: list[Event] = []


class Bundle(Struct, frozen=True):
    """`result-summary.json` of a published sample."""

    task: str
    harness: str
    task_checksum: str | None = None
    adapter_id: str | None = None
    model: str | None = None
    fabric_status: str = ""
    harbor_reward: float | None = None


class Atif(Struct, frozen=True):
    final_metrics: FinalMetrics | None = None


class Telemetry(Struct, frozen=True):
    """`telemetry-summary.json` of a published sample."""

    atif: Atif = Atif()


def is_result(value: object) -> bool:
    """Says whether a parsed document looks like a RunResult."""
    return {"request_id", "status", "invocation_id", "harness"} <= members(value).keys()


def collect(named: Named, collecting: Collecting) -> None:
    """Adds the results and sample bundles below a folder, or the one file that was named, as one configuration."""
    evidence = collecting.evidence
    attempts: list[Attempt] = []
    for document, path in _documents(evidence.root(named.path), evidence):
        origin = Origin(source=document.source)
        if is_result(document.value):
            result = typed(document.value, Result, evidence, origin)
            if result is not None:
                attempts.append(_attempt(result, document, origin, configuration=named.configuration))
        else:
            bundle = typed(document.value, Bundle, evidence, origin)
            if bundle is not None:
                telemetry = _telemetry(path.parent / TELEMETRY, evidence)
                attempts.append(_bundled(bundle, document, telemetry, configuration=named.configuration))
    if attempts:
        collecting.add(_configuration(attempts, named.configuration), attempts)


def _documents(path: Path, evidence: Evidence) -> Iterator[tuple[Document, Path]]:
    files = [path] if path.is_file() else evidence.files(path)
    for entry in files:
        if entry.is_dir():
            yield from _documents(entry, evidence)
        elif entry.suffix == ".json":
            document = evidence.json(entry)
            if document is not None and (is_result(document.value) or _is_bundle(document.value)):
                yield document, entry


def _is_bundle(value: object) -> bool:
    return str(members(value).get("schema_version", "")).startswith(BUNDLE_SCHEMA)


def _configuration(attempts: list[Attempt], name: str) -> Configuration:
    return Configuration(
        id=name,
        attempts_complete=False,
        relation=Relation.UNKNOWN,
        gaps=(
            Noted(
                reason=AttemptGap.ATTEMPT_LIST_UNVERIFIED,
                detail="results do not say how many were planned; an error that was raised leaves none",
            ),
        ),
        origin=attempts[0].origin,
    )


def _attempt(result: Result, document: Document, origin: Origin, *, configuration: str) -> Attempt:
    return Attempt(
        attempt_id=f"{result.invocation_id or result.request_id}",
        configuration_id=configuration,
        task_id=result.request_id,
        task_revision="unknown",
        execution=STATUSES.get(result.status, Execution.UNKNOWN),
        stop=_stop(result, origin),
        requests=(
            Request(
                request_id=result.request_id,
                result=document.source,
                state=RequestState.RESULT,
                execution=STATUSES.get(result.status, Execution.UNKNOWN),
                invocation=_invocation(result, origin),
                resources=tuple(_resources(result, origin)),
                origin=origin,
            ),
        ),
        fields={"agent": result.agent_name, "harness": result.harness, "adapter": recorded(result.adapter_id)},
        content_sha256=document.sha256,
        origin=origin,
    )


def _stop(result: Result, origin: Origin) -> Stop:
    if result.status == "succeeded":
        return Stop(kind=StopKind.FINISHED)
    kind = StopKind.CANCELLED if result.status == "cancelled" else StopKind.ERROR
    code = result.error.code if result.error is not None else ""
    place = Origin(source=origin.source, pointer="/error/code")
    return Stop(kind=StopKind.TIMEOUT if code == "host_timeout" else kind, word=code, origin=place)


def _invocation(result: Result, origin: Origin) -> Invocation:
    times = {event.kind: event.timestamp_millis for event in result.events}
    started, ended = times.get("invocation_start"), times.get("invocation_end")
    elapsed = result.system_stats.elapsed_seconds if result.system_stats is not None else None
    return Invocation(
        started_unix_ns=None if started is None else started * 1_000_000,
        ended_unix_ns=None if ended is None else ended * 1_000_000,
        elapsed_seconds=elapsed if elapsed is not None and elapsed >= 0 else None,
        origin=Origin(source=origin.source, pointer="/events"),
    )


def _resources(result: Result, origin: Origin) -> Iterable[Resource]:
    snapshot = result.resource_snapshot
    if snapshot is None:
        return
    values = (snapshot.resident_memory_bytes, snapshot.process_count, snapshot.cpu_time_seconds)
    for name, value in zip(OBSERVED, values, strict=True):
        if value is not None:
            yield Resource(
                scope=f"process tree of {result.runtime_id or 'the host'}",
                name=name,
                value=value,
                observed_unix_ns=unix_ns(snapshot.observed_at),
                origin=Origin(source=origin.source, pointer=f"/resource_snapshot/{name}"),
            )


def _telemetry(path: Path, evidence: Evidence) -> tuple[FinalMetrics, Origin] | None:
    document = evidence.json(path)
    if document is None or document.value is None:
        return None
    origin = Origin(source=document.source, pointer="/atif/final_metrics")
    telemetry = typed(document.value, Telemetry, evidence, origin)
    if telemetry is None or telemetry.atif.final_metrics is None:
        return None
    return telemetry.atif.final_metrics, origin


def _bundled(
    bundle: Bundle, document: Document, telemetry: tuple[FinalMetrics, Origin] | None, *, configuration: str
) -> Attempt:
    origin = Origin(source=document.source)
    accounting = None
    if telemetry is not None:
        usage = totals_usage(*telemetry, model=bundle.model)
        accounting = Accounting(source=AccountingSource.LEGACY, usage=(usage,), origin=telemetry[1])
    return Attempt(
        attempt_id=f"{bundle.harness}/{bundle.task}/{document.sha256[:12]}",
        configuration_id=configuration,
        task_id=bundle.task,
        task_revision=bundle.task_checksum or "unknown",
        execution=STATUSES.get(bundle.fabric_status, Execution.UNKNOWN),
        evaluations=tuple(_verdict(bundle, origin)),
        accounting=accounting,
        fields={"harness": bundle.harness, "adapter": bundle.adapter_id, "model": bundle.model},
        content_sha256=document.sha256,
        gaps=tuple(_legacy_gaps(telemetry, origin)),
        origin=origin,
    )


def _legacy_gaps(telemetry: tuple[FinalMetrics, Origin] | None, origin: Origin) -> Iterable[Noted]:
    if telemetry is None:
        yield Noted(reason=AttemptGap.USAGE_ABSENT, origin=origin)
        return
    yield Noted(reason=AttemptGap.LEGACY_ONLY, detail="only its trajectory counts tokens", origin=telemetry[1])
    yield from violations(*telemetry)


def _verdict(bundle: Bundle, origin: Origin) -> Iterable[Evaluation]:
    reward = bundle.harbor_reward
    if reward is None:
        return
    binary = reward in (0.0, 1.0)
    verdict = (VerdictKind.PASS if reward else VerdictKind.FAIL) if binary else VerdictKind.SCORE
    yield Evaluation(
        evaluator=Evaluator(id="harbor verifier"),
        verdict=verdict,
        score=None if binary else reward,
        origin=Origin(source=origin.source, pointer="/harbor_reward"),
    )
