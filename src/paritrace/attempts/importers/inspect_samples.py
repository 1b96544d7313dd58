"""One sample of an Inspect log as an attempt: how it stopped, what was scored, what it used (AT-4, AT-6, AT-16)."""

import re
from collections.abc import Iterable, Mapping
from math import isfinite

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from paritrace.attempts.accounts import LARGEST, Accounting, AccountingSource, Cost, PricingBasis, PricingKind, Usage
from paritrace.attempts.gaps import AttemptGap, Noted
from paritrace.attempts.importers.collecting import seconds_between, unix_ns
from paritrace.attempts.importers.inspect_format import Header, ModelEvent, ModelUsage, Sample
from paritrace.attempts.importers.usage_conventions import Counts, proven
from paritrace.attempts.manifest import (
    Attempt,
    Evaluation,
    Evaluator,
    Execution,
    Invocation,
    Relation,
    Request,
    RequestState,
    Stop,
    StopKind,
    VerdictKind,
)
from paritrace.attempts.origins import Origin
from paritrace.evidence.digests import sha256_hex
from paritrace.evidence.plain_json import elements, is_object, members

LETTERS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}  # Inspect's CORRECT, INCORRECT, PARTIAL, NOANSWER
STOPS = {
    "time": StopKind.TIMEOUT,
    "working": StopKind.TIMEOUT,
    "operator": StopKind.CANCELLED,
    "message": StopKind.LIMIT,
    "token": StopKind.LIMIT,
    "context": StopKind.LIMIT,
    "custom": StopKind.LIMIT,
    "cost": StopKind.LIMIT,
    "turn": StopKind.LIMIT,
}
SHORT = 8  # characters of a random id
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(?=\()")  # the type, never its message (P7)


class Placed(Struct, frozen=True):
    """A sample, where it stands, and its digest: the same in `.eval` and `.json`."""

    sample: Sample
    origin: Origin
    sha256: str


def sample_sha256(plain: object) -> str:
    """Returns the digest of a parsed sample."""
    return sha256_hex(msgspec.json.encode(plain, order="sorted"))


def attempt_of(placed: Placed, header: Header, *, configuration: str) -> Attempt:
    """Returns a sample as an attempt; its verdicts are scores until `decided` has seen the whole log."""
    sample, origin = placed.sample, placed.origin
    return Attempt(
        attempt_id=attempt_id(header, sample.id, sample.epoch),
        configuration_id=configuration,
        task_id=task_id(header, sample.id),
        task_revision=str(header.eval.task_version),
        relation=Relation.INDEPENDENT,
        execution=Execution.FAILED if sample.error is not None else Execution.SUCCEEDED,
        stop=_stop(sample, origin),
        evaluations=tuple(_evaluations(sample, header, origin)),
        duration_seconds=_whole(sample.total_time, sample),
        accounting=_accounting(sample, origin),
        requests=tuple(_requests(sample, origin)),
        requests_complete=isinstance(sample.events, list),
        content_sha256=sha256_hex(f"{header.status} {placed.sha256}".encode()),
        gaps=tuple(_gaps(sample, origin)),
        origin=origin,
    )


def decided(attempts: list[Attempt]) -> list[Attempt]:
    """Returns the attempts of one log with verdicts: an evaluator whose scores are all 0 or 1 passes or fails."""
    scores: dict[str, set[float]] = {}
    for attempt in attempts:
        for evaluation in attempt.evaluations:
            if evaluation.score is not None:
                scores.setdefault(evaluation.evaluator.id, set()).add(evaluation.score)
    binary = {name for name, values in scores.items() if values <= {0.0, 1.0}}
    return [
        replace(attempt, evaluations=tuple(_decided(one, binary) for one in attempt.evaluations))
        for attempt in attempts
    ]


def _decided(evaluation: Evaluation, binary: set[str]) -> Evaluation:
    if evaluation.score is None or evaluation.evaluator.id not in binary:
        return evaluation
    verdict = VerdictKind.PASS if evaluation.score == 1 else VerdictKind.FAIL
    return replace(evaluation, verdict=verdict, score=None)


def attempt_id(header: Header, sample: str | int, epoch: int) -> str:
    """Returns the identity of an attempt: the task, the sample, the epoch, and which run of which task it was.

    Run and task have ids of 22 random characters; eight of each tell them apart, and can be read.
    """
    spec = header.eval
    run = (spec.run_id or spec.eval_id or "unknown")[:SHORT]
    return f"{spec.task}/{sample}/{epoch}@{run}.{spec.task_id[:SHORT]}".rstrip(".")


def task_id(header: Header, sample: str | int) -> str:
    """Returns the name of a task: the Inspect task and the sample."""
    return f"{header.eval.task}/{sample}"


def values_of(sample: Sample) -> dict[str, object]:
    """Returns every scorer's value; a scorer that gives several is `scorer/key`."""
    found: dict[str, object] = {}
    for scorer, score in (sample.scores or {}).items():
        if is_object(score.value):
            found |= {f"{scorer}/{key}": value for key, value in score.value.items()}
        else:
            found[scorer] = score.value
    return found


def as_number(value: object) -> float | None:
    """Returns a score as a number, None where it is none that can be used: letters, booleans, numbers, not NaN."""
    if isinstance(value, str):
        if value in LETTERS:
            return LETTERS[value]
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool | int | float) and abs(value) <= LARGEST:
        return float(value)
    return None


def usage_of(usage: ModelUsage, *, model: str, origin: Origin, response_id: str = "", work: bool = False) -> Usage:
    """Returns Inspect's counters. What the total proves of the cache convention is set, nothing else."""
    cached, written = usage.input_tokens_cache_read, usage.input_tokens_cache_write
    counts = Counts(
        input_tokens=usage.input_tokens,
        cached=cached,
        cache_write=written,
        output_tokens=usage.output_tokens,
        total=usage.total_tokens,
    )
    shown = proven(counts)
    return Usage(
        model=model,
        input_tokens=_whole_tokens(usage.input_tokens),
        cached_input_tokens=_whole_tokens(cached, otherwise=0 if shown.nothing_else else None),
        cache_write_input_tokens=_whole_tokens(written, otherwise=0 if shown.nothing_else else None),
        output_tokens=_whole_tokens(usage.output_tokens),
        reasoning_tokens=_whole_tokens(usage.reasoning_tokens),
        input_includes_cache=shown.input_includes_cache,
        output_includes_reasoning=shown.output_includes_reasoning,
        response_id=response_id,
        work_shown=work,
        origin=origin,
    )


def accounting_of(
    usages: Mapping[str, ModelUsage], *, origin: Origin, pointer: str, complete: bool | None = None
) -> Accounting | None:
    """Returns counters per model as one accounting by the harness; None where there are none."""
    if not usages:
        return None
    places = {model: _at(origin, f"{pointer}/{_escaped(model)}") for model in usages}
    return Accounting(
        source=AccountingSource.HARNESS_REPORTED,
        usage=tuple(usage_of(usage, model=model, origin=places[model]) for model, usage in usages.items()),
        costs=tuple(_costs(usages, places)),
        complete=complete,
        origin=_at(origin, pointer),
    )


def _costs(usages: Mapping[str, ModelUsage], places: Mapping[str, Origin]) -> Iterable[Cost]:
    basis = PricingBasis(kind=PricingKind.ESTIMATED, id="inspect_ai model cost data")
    for model, usage in usages.items():
        if usage.total_cost is not None and usage.total_cost >= 0:
            yield Cost(amount=usage.total_cost, basis=basis, origin=places[model])


def _accounting(sample: Sample, origin: Origin) -> Accounting | None:
    complete = sample.error is None and not sample.error_retries
    return accounting_of(sample.model_usage, origin=origin, pointer="/model_usage", complete=complete)


def _stop(sample: Sample, origin: Origin) -> Stop:
    if sample.error is not None:
        found = _EXCEPTION.match(sample.error.message)
        return Stop(kind=StopKind.ERROR, word=found.group() if found else "error", origin=_at(origin, "/error"))
    limit = sample.limit
    if limit is None:
        return Stop(kind=StopKind.FINISHED)
    kind = STOPS.get(limit.type, StopKind.LIMIT)
    seconds = limit.limit if kind is StopKind.TIMEOUT and limit.limit is not None and limit.limit >= 0 else None
    return Stop(kind=kind, word=f"{limit.type} limit", limit_seconds=seconds, origin=_at(origin, "/limit"))


def _evaluations(sample: Sample, header: Header, origin: Origin) -> Iterable[Evaluation]:
    version = header.eval.packages.get("inspect_ai")
    for name, value in values_of(sample).items():
        number = as_number(value)
        yield Evaluation(
            evaluator=Evaluator(id=name, version=f"inspect_ai {version}" if version else None),
            verdict=VerdictKind.ERROR if number is None else VerdictKind.SCORE,
            score=number,
            counts=sample.invalidation is None,
            origin=_at(origin, f"/scores/{_escaped(name)}"),
        )


def _requests(sample: Sample, origin: Origin) -> Iterable[Request]:
    """Yields the model calls of a sample; an answer out of Inspect's own cache was no request."""
    for index, plain in enumerate(elements(sample.events)):
        if members(plain).get("event") != "model":
            continue
        place = _at(origin, f"/events/{index}")
        try:
            event = msgspec.convert(plain, ModelEvent)
        except msgspec.ValidationError:
            yield Request(request_id=f"event {index}", state=RequestState.UNREADABLE, origin=place)
            continue
        if event.cache != "read":
            yield _request(event, index, place)


def _request(event: ModelEvent, index: int, place: Origin) -> Request:
    usage = None if event.output is None else event.output.usage
    answered = event.output is not None and bool(event.output.choices) and event.error is None
    state = RequestState.RESULT if answered else RequestState.STARTED_ONLY
    accounting = None
    if usage is not None:
        used = usage_of(usage, model=event.model, origin=_at(place, "/output/usage"), work=answered)
        accounting = Accounting(source=AccountingSource.PROVIDER_RESPONSE, usage=(used,), origin=place)
    gaps = () if accounting is not None else (Noted(reason=AttemptGap.USAGE_ABSENT, origin=place),)
    if event.error is not None:
        gaps = (Noted(reason=AttemptGap.RAISED_WITHOUT_ACCOUNTING, origin=place),)
    return Request(
        request_id=event.uuid or f"event {index}",
        state=RequestState.RESULT if event.error is not None else state,
        execution=Execution.SUCCEEDED if answered else Execution.FAILED,
        accounting=accounting,
        invocation=Invocation(
            started_unix_ns=unix_ns(event.timestamp),
            ended_unix_ns=unix_ns(event.completed),
            elapsed_seconds=event.working_time if event.working_time is not None and event.working_time >= 0 else None,
            origin=place,
        ),
        gaps=gaps,
        origin=place,
    )


def _gaps(sample: Sample, origin: Origin) -> Iterable[Noted]:
    if sample.error_retries:
        yield Noted(
            reason=AttemptGap.RETRY_DESTROYED,
            count=len(sample.error_retries),
            detail="tries before this one: only their errors were kept; what they used is in the run's total alone",
            origin=_at(origin, "/error_retries"),
        )
    if sample.error is not None and not sample.model_usage and not isinstance(sample.events, list):
        yield Noted(reason=AttemptGap.RAISED_WITHOUT_ACCOUNTING, origin=_at(origin, "/error"))


def _whole(seconds: float | None, sample: Sample) -> float | None:
    if seconds is not None and seconds >= 0 and isfinite(seconds):
        return seconds
    return seconds_between(sample.started_at, sample.completed_at)


def _whole_tokens(count: int | None, *, otherwise: int | None = None) -> int | None:
    return count if count is not None and count >= 0 else otherwise


def _escaped(name: str) -> str:
    """Returns a member's name as JSON Pointer has it (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1")


def _at(origin: Origin, pointer: str) -> Origin:
    return replace(origin, pointer=origin.pointer + pointer)
