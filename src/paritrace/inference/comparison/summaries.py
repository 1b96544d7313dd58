"""Figures of a run of which only a client's summary is left: quantiles as the tool made them (IN-15, IN-17). Pure."""

from collections.abc import Iterator, Mapping

from paritrace.evidence.plain_json import members
from paritrace.inference.comparison.absence import Absent
from paritrace.inference.comparison.metrics import OUTPUT_TOKENS_PER_SECOND, REQUESTS_PER_SECOND, Figure, Span
from paritrace.inference.comparison.vocabulary import CompareGap
from paritrace.inference.importers.client_terms import Outcome

_METRICS = {
    "ttft_ms": "time_to_first_output",
    "time_to_first_token": "time_to_first_output",
    "e2el_ms": "latency",
    "request_latency": "latency",
    "tpot_ms": "mean_between_tokens",
    "time_per_output_token": "mean_between_tokens",
}
_STATISTICS = {"median": "p50", "p50": "p50", "p90": "p90", "p99": "p99", "mean": "mean"}
_RATES = {
    "request_throughput": REQUESTS_PER_SECOND,
    "requests_per_sec": REQUESTS_PER_SECOND,
    "output_throughput": OUTPUT_TOKENS_PER_SECOND,
    "output_tokens_per_sec": OUTPUT_TOKENS_PER_SECOND,
}
_PER_SECOND = {"s": 1.0, "ms": 1e3}


def figures_of_summary(metadata: Mapping[str, object]) -> dict[str, Figure]:
    """Returns the figures of a client's summary by metric, times in seconds.

    Its quantiles are of the successful requests: where it tells of others, they are not those of all.
    """
    return dict(_figures(metadata))


def _figures(metadata: Mapping[str, object]) -> Iterator[tuple[str, Figure]]:
    counts = members(metadata.get("counts"))
    others = sum(
        count
        for outcome in Outcome
        if outcome is not Outcome.SUCCESSFUL and isinstance(count := counts.get(outcome.value), int)
    )
    units = members(metadata.get("units"))
    for name, group in members(metadata.get("quantiles")).items():
        divisor = _PER_SECOND.get(str(units.get(name)))
        if name not in _METRICS or divisor is None:
            continue
        for statistic, value in members(group).items():
            if statistic in _STATISTICS:
                yield f"{_METRICS[name]}.{_STATISTICS[statistic]}", _figure(value, divisor, others)
    for name, value in members(metadata.get("rates")).items():
        if name in _RATES:
            yield _RATES[name], _figure(value, 1.0, 0)


def _figure(value: object, divisor: float, others: int) -> Figure:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return Absent(CompareGap.NOT_RECORDED, str(members(value).get("gap") or "") or None)
    if others:
        return Absent(CompareGap.UNDEFINED_IN_ARM, f"of the successful ones only, and {others} were not")
    return Span(value / divisor, value / divisor)
