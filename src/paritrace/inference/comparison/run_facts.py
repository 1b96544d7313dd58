"""What the events of one run say of its requests, taken in one pass (IN-17, IN-27)."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from paritrace.evidence.plain_json import members
from paritrace.inference.comparison.absence import Absent
from paritrace.inference.comparison.conditions import INTERVAL, Condition, strongest
from paritrace.inference.comparison.metrics import (
    NAMES,
    OUTPUT_TOKENS_PER_SECOND,
    REQUESTS_PER_SECOND,
    SUCCESSFUL_FRACTION,
    Figure,
    Span,
    latency_figures,
    rate,
)
from paritrace.inference.comparison.objectives import Attained, Objective
from paritrace.inference.comparison.populations import UNKNOWN, Populations, populations
from paritrace.inference.comparison.summaries import figures_of_summary
from paritrace.inference.comparison.vocabulary import CompareGap, Stated
from paritrace.inference.context import ClockKind
from paritrace.inference.importers.client_terms import SUMMARY_COMPONENT, TIMINGS, Outcome, Timing
from paritrace.inference.records import AnyEvent, Capabilities, Request, Stage

_IN_FLIGHT = "in_flight"
_TO_FIRST = (Timing.TIME_TO_FIRST_OUTPUT, Timing.LATENCY)
_NS = 1e9


class RunFacts(Struct, frozen=True):
    """One run as one source saw it. `figures` by metric; `scheduled`: latencies begin when a request was to be sent."""

    run_id: str
    source: str
    populations: Populations
    figures: dict[str, Figure]
    fields: dict[str, Condition]
    scheduled: bool
    summary_only: bool


class Tally:
    """Takes the events of one run, by the source that saw its requests."""

    def __init__(self, source: str, *, objectives: Sequence[Objective] = ()) -> None:
        self.source = source
        self._attained = [Attained(one) for one in objectives]
        self._outcomes: Counter[str] = Counter()
        self._values: dict[Timing, list[float]] = {timing: [] for timing in NAMES}
        self._num_successful = 0
        self._output_tokens: int | None = 0
        self._in_flight = 0
        self._scheduled = self._unscheduled = 0
        self._summaries: list[Capabilities] = []
        self.models: set[str] = set()

    def take(self, event: AnyEvent) -> None:
        """Takes one event of this source."""
        match event:
            case Request():
                self._request(event)
            case Stage() if event.name == _IN_FLIGHT:
                self._in_flight += 1
            case Capabilities() if event.component == SUMMARY_COMPONENT:
                self._summaries.append(event)
            case _:
                pass

    @property
    def has_requests(self) -> bool:
        """Whether a client or a server told of single requests, or of all in a summary."""
        return bool(self._outcomes or self._summaries)

    def _request(self, request: Request) -> None:
        known = request.status in set(Outcome)
        self._outcomes[request.status if known and request.status is not None else UNKNOWN] += 1
        model = request.metadata.get("model")
        if isinstance(model, str):
            self.models.add(model)
        if request.status != Outcome.SUCCESSFUL.value:
            return
        self._num_successful += 1
        if self._output_tokens is not None:
            tokens = request.output_tokens
            self._output_tokens = None if tokens is None else self._output_tokens + tokens
        seconds = self._timings(request, members(request.metadata.get(TIMINGS)))
        for attained in self._attained:
            attained.take(seconds, output_tokens=request.output_tokens)

    def _timings(self, request: Request, timings: Mapping[str, object]) -> dict[str, float]:
        """Takes the timings of a request, and returns them in seconds by metric."""
        waited = _waited(request, timings)
        self._scheduled += waited is not None
        self._unscheduled += waited is None
        seconds: dict[str, float] = {}
        for timing, name in NAMES.items():
            ns = timings.get(timing.value)
            if timing is Timing.LATENCY and ns is None and request.context.facts.clock_kind is ClockKind.MONOTONIC:
                ends = request.start_ns, request.end_ns
                ns = None if ends[0] is None or ends[1] is None else ends[1] - ends[0]
            if isinstance(ns, int):
                later = waited or 0 if timing in _TO_FIRST else 0
                seconds[name] = (ns + later) / _NS
                self._values[timing].append(seconds[name])
        return seconds

    def facts(self, run_id: str, fields: Mapping[str, Condition]) -> RunFacts:
        """Returns what was taken, as the figures of a run."""
        summary_only = not self._outcomes and bool(self._summaries)
        counts = self._counts()
        of_run = populations(counts)
        figures = self._from_summaries() if summary_only else self._from_requests(of_run, fields)
        fraction = of_run.successful_fraction
        for attained in self._attained:
            figures[attained.objective.metric] = _attained(attained, of_run, summary_only=summary_only)
        figures[SUCCESSFUL_FRACTION] = Absent(CompareGap.NO_REQUESTS) if fraction is None else Span(*fraction)
        return RunFacts(
            run_id=run_id,
            source=self.source,
            populations=of_run,
            figures=figures,
            fields=self._fields(fields),
            scheduled=bool(self._scheduled) and not self._unscheduled,
            summary_only=summary_only,
        )

    def _counts(self) -> Counter[str]:
        """Requests by outcome; those under way when their recorder was killed, and those a summary is silent about."""
        counts = Counter(self._outcomes)
        ended = sum(counts.values())
        counts[UNKNOWN] += max(0, self._in_flight - ended)
        if not self._outcomes:
            for summary in self._summaries:
                counts.update(_counted(members(summary.metadata.get("counts"))))
        return +counts

    def _from_requests(self, of_run: Populations, fields: Mapping[str, Condition]) -> dict[str, Figure]:
        figures: dict[str, Figure] = {}
        unsuccessful = of_run.offered.high - of_run.successful.high
        for timing, name in NAMES.items():
            values = self._values[timing]
            if not values:
                figures[f"{name}.p50"] = Absent(CompareGap.NOT_RECORDED)
                continue
            without = self._num_successful - len(values)
            figures |= latency_figures(name, values, num_failed=unsuccessful, num_unknown=of_run.num_unknown + without)
        interval = fields.get(INTERVAL)
        seconds = float(interval.value) if interval is not None and isinstance(interval.value, int | float) else None
        sure = of_run.successful.low == of_run.successful.high
        figures[REQUESTS_PER_SECOND] = rate(self._num_successful if sure else None, seconds)
        figures[OUTPUT_TOKENS_PER_SECOND] = rate(self._output_tokens if sure else None, seconds)
        return figures

    def _from_summaries(self) -> dict[str, Figure]:
        if len(self._summaries) > 1:
            return {}  # two summaries of one run: quantiles of parts do not add up
        return figures_of_summary(self._summaries[0].metadata)

    def _fields(self, fields: Mapping[str, Condition]) -> dict[str, Condition]:
        """The stated conditions, and what the client's events tell beside them."""
        found = dict(fields)
        told: dict[str, Condition] = {"load.tool": Condition(self.source, Stated.OBSERVED)}
        if len(self.models) == 1:
            told["model.name"] = Condition(next(iter(self.models)), Stated.REPORTED)
        for summary in self._summaries:
            load = members(summary.metadata.get("load"))
            for name in ("request_rate", "max_concurrency"):
                value = load.get(name)
                if isinstance(value, str | int | float):
                    told[f"load.{name}"] = Condition(value, Stated.REPORTED)
        for name, condition in told.items():
            found[name] = strongest(found.get(name), condition)
        return found


def _counted(counts: Mapping[str, object]) -> dict[str, int]:
    """Counts of a summary by outcome: what was offered and is in none of them is unknown."""
    known = {outcome.value: count for outcome in Outcome if isinstance(count := counts.get(outcome.value), int)}
    totals = [count for name in ("offered", "sent") if isinstance(count := counts.get(name), int)]
    rest = max(totals, default=0) - sum(known.values())
    return known | ({UNKNOWN: rest} if rest > 0 else {})


def _attained(attained: Attained, of_run: Populations, *, summary_only: bool) -> Figure:
    if summary_only:
        return Absent(CompareGap.NOT_RECORDED, "a summary does not tell of single requests")
    return attained.figure(num_offered=of_run.offered.high, num_unknown=of_run.num_unknown)


def _waited(request: Request, timings: Mapping[str, object]) -> int | None:
    """How long a request was late when its latencies began; None where that is not recorded."""
    scheduled, start_ns = timings.get(Timing.SCHEDULED.value), request.start_ns
    return max(0, start_ns - scheduled) if isinstance(scheduled, int) and start_ns is not None else None


def tallies(events: Iterable[AnyEvent], *, objectives: Sequence[Objective] = ()) -> dict[str, Tally]:
    """Returns what each source of a run tells, by the source's name, in one pass."""
    found: dict[str, Tally] = {}
    for event in events:
        source = event.context.facts.source
        tally = found.get(source)
        if tally is None:
            tally = found[source] = Tally(source, objectives=objectives)
        tally.take(event)
    return {name: tally for name, tally in found.items() if tally.has_requests}
