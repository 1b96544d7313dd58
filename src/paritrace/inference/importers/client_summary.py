"""A client's summary as an event: quantiles and counts as reported, and why a figure is not taken (IN-15). Pure."""

from collections.abc import Mapping, Sequence
from math import isfinite

from msgspec import Struct

from paritrace.evidence.gaps import Gap
from paritrace.inference.context import Context
from paritrace.inference.importers.client_terms import SUMMARY_COMPONENT, SummaryGap
from paritrace.inference.records import Capabilities

QUANTILES = "quantiles"
POPULATIONS = "populations"
Figure = float | Gap[SummaryGap]


class Summary(Struct, frozen=True):
    """What a client reports of all its requests.

    `quantiles`: by metric and statistic (`mean`, `p99`), in `units` of the metric. `counts`: requests by outcome, where
    the client gives them. `rates`: per second, over an interval that the client chose. `load`: how it was sent.
    """

    tool: str
    quantiles: dict[str, dict[str, Figure]]
    units: dict[str, str]
    counts: dict[str, int]
    rates: dict[str, Figure]
    load: dict[str, object]
    has_values: bool


def latency(value: object, *, num_successful: int | None) -> Figure:
    """Returns a latency of a summary.

    Where no request was completed there is none, whatever was written; a latency of exactly 0 was measured by nobody.
    """
    if num_successful == 0:
        return Gap(SummaryGap.NO_COMPLETED_REQUESTS)
    found = figure(value)
    return Gap(SummaryGap.ZERO_REPORTED) if not isinstance(found, Gap) and found == 0 else found


def figure(value: object) -> Figure:
    """Returns a number of a summary, or why it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return Gap(SummaryGap.NOT_REPORTED)
    return float(value) if isfinite(value) else Gap(SummaryGap.NOT_FINITE)


def event_of(summary: Summary, *, context: Context, event_id: str) -> Capabilities:
    """Returns a summary as the event of a component: available where it holds one figure that was taken."""
    figures = [one for group in summary.quantiles.values() for one in group.values()]
    known = any(not isinstance(one, Gap) for one in figures)
    collected = (QUANTILES,) * known + (POPULATIONS,) * summary.has_values
    return Capabilities(
        context=context,
        event_id=event_id,
        component=SUMMARY_COMPONENT,
        available=known or summary.has_values,
        supported=collected,
        enabled=collected,
        collected=collected,
        metadata={
            "counts": dict(sorted(summary.counts.items())),
            "load": dict(sorted(summary.load.items())),
            QUANTILES: {name: _plain(group) for name, group in sorted(summary.quantiles.items())},
            POPULATIONS: "in requests" if summary.has_values else {"gap": SummaryGap.NO_POPULATION.value},
            "rates": _plain(summary.rates),
            "tool": summary.tool,
            "units": dict(sorted(summary.units.items())),
        },
    )


def limits_of(summary: Summary) -> Sequence[str]:
    """Returns in words what a summary does not hold."""
    said: list[str] = []
    if not summary.has_values:
        said.append("a summary: quantiles as the tool made them, and no values of single requests")
    absent = {one.gap for group in summary.quantiles.values() for one in group.values() if isinstance(one, Gap)} - {
        SummaryGap.NOT_REPORTED
    }
    if SummaryGap.NO_COMPLETED_REQUESTS in absent:
        said.append("no request was completed: latencies are unavailable, whatever the file writes for them")
    if SummaryGap.ZERO_REPORTED in absent:
        said.append("a latency of exactly 0 is not taken: it was not measured")
    return said


def _plain(figures: Mapping[str, Figure]) -> dict[str, object]:
    return {name: {"gap": one.gap.value} if isinstance(one, Gap) else one for name, one in sorted(figures.items())}
