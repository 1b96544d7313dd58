"""Stages of inference-perf: the lifecycle metrics of one stage of load (IN-15)."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from paritrace.errors import EvidenceError
from paritrace.evidence.plain_json import is_object, members
from paritrace.inference.importers.client_summary import Figure, Summary, event_of, figure, latency, limits_of
from paritrace.inference.importers.client_terms import Outcome
from paritrace.inference.importers.text_source import TextSource, head_of
from paritrace.inference.importing import Account, Asked, Events, Imported, Reader, SourceKind
from paritrace.inference.plain_values import whole

NAME = "inference-perf"
_DELAY = "schedule_delay"
_MARKS = (b'"load_summary"', b'"schedule_delay"')


def recognises(path: Path) -> bool:
    """Says whether a file looks like a stage of inference-perf."""
    head = head_of(path)
    return head.lstrip()[:1] == b"{" and any(mark in head for mark in _MARKS)


def open_stage(asked: Asked) -> Imported:
    """Opens the metrics of one stage; see `importing`.

    Raises:
        EvidenceError: Refused, `not_importable` where it is none, `too_large_to_import`.
    """
    source = TextSource(asked, reader=NAME)
    parsed = source.document()
    if not is_object(parsed.value) or "load_summary" not in parsed.value:
        said = "; ".join(str(one) for one in parsed.refusals) or "no object with load_summary"
        raise EvidenceError(
            f"{asked.path} is no stage of inference-perf: {said}",
            code="not_importable",
            fix="give a file like stage_0_lifecycle_metrics.json",
        )
    return Imported(
        (source.reference("application/json"),), _events(source, parsed.value, num_refused=len(parsed.refusals))
    )


def _events(source: TextSource, stage: Mapping[str, object], *, num_refused: int) -> Events:
    summary = summary_of(stage)
    yield event_of(summary, context=source.context(), event_id=source.event_id("summary"))
    limits = list(limits_of(summary))
    if num_refused:
        limits.append(f"{num_refused} values are not strict JSON and are not read")
    counts = {f"requests:{name}": count for name, count in summary.counts.items()}
    return Account(complete=not num_refused, counts=counts, limits=tuple(limits))


def summary_of(stage: Mapping[str, object]) -> Summary:
    """Returns what the metrics of a stage say. The delays of its own schedule stand beside its latencies (IN-27)."""
    load, successes, failures = (members(stage.get(name)) for name in ("load_summary", "successes", "failures"))
    counts = dict(_counts(load, successes, failures))
    latencies = members(successes.get("latency"))
    quantiles = {
        name: _quantiles(latencies[name], num_successful=counts.get(Outcome.SUCCESSFUL.value))
        for name in latencies
        if is_object(latencies[name])
    }
    if is_object(load.get(_DELAY)):
        quantiles[_DELAY] = {name: figure(value) for name, value in members(load[_DELAY]).items()}
    throughput = members(successes.get("throughput"))
    return Summary(
        tool=NAME,
        quantiles=quantiles,
        units=dict.fromkeys(quantiles, "s"),
        counts=counts,
        rates={name: figure(throughput[name]) for name in throughput},
        load={
            name: load[name]
            for name in ("requested_rate", "achieved_rate", "send_duration")
            if isinstance(load.get(name), int | float)
        },
        has_values=False,
    )


def _counts(
    load: Mapping[str, object], successes: Mapping[str, object], failures: Mapping[str, object]
) -> Iterator[tuple[str, int]]:
    for name, of in (("sent", load), (Outcome.SUCCESSFUL.value, successes), (Outcome.FAILED.value, failures)):
        count = whole(of.get("count"))
        if count is not None:
            yield name, count


def _quantiles(of: object, *, num_successful: int | None) -> dict[str, Figure]:
    return {name: latency(value, num_successful=num_successful) for name, value in members(of).items()}


READER = Reader(
    name=NAME,
    kind=SourceKind.CLIENT,
    reads="lifecycle metrics of a stage of inference-perf",
    recognises=recognises,
    open=open_stage,
)
