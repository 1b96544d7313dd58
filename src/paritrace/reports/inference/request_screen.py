"""The screen of one request: as each party tells it, the iterations that served it, and what is not known."""

from collections.abc import Iterable, Iterator

from paritrace.evidence.gaps import Gap
from paritrace.evidence.ids import Ref
from paritrace.inference.gaps import InferenceGap
from paritrace.inference.served_result import ServedIn, ServedReport, ToldRequest
from paritrace.reports.harmless import harmless
from paritrace.reports.wording import count

MOST_ROWS = 20


def request_screen(report: ServedReport) -> str:
    """Return the screen; times in milliseconds, a gap by its name."""
    return "\n".join(_lines(report))


def _lines(report: ServedReport) -> Iterator[str]:
    yield f"request {harmless(report.asked)}, told by {len(report.requests)}:"
    for told in report.requests[:MOST_ROWS]:
        yield f"  {_party(told)}"
    for stage in report.stages[:MOST_ROWS]:
        yield f"    {harmless(stage.name)}: {_time(stage.elapsed_ns)}"
    if isinstance(report.num_iterations, Gap):
        yield f"iterations that served it: unknown ({report.num_iterations.gap})"
        if not isinstance(report.in_flight, Gap):
            yield f"  {count(report.in_flight, 'iteration')} ran while it was in flight, by the same clock: an estimate"
        return
    yield f"iterations that served it: {report.num_iterations:,}"
    for served in report.iterations[:MOST_ROWS]:
        yield f"  {_served(served)}"
    if report.num_iterations > MOST_ROWS:
        yield f"  showing {MOST_ROWS} of {report.num_iterations:,}; --json has more"
    yield from _sums(report.iterations)


def _party(told: ToldRequest) -> str:
    tokens = ", ".join(
        f"{number:,} {name}" for name, number in (("in", told.input_tokens), ("out", told.output_tokens)) if number
    )
    said = [harmless(told.source), told.status and harmless(told.status), _time(told.elapsed_ns), tokens]
    return f"{_ref(told.request)}: {', '.join(one for one in said if one)}"


def _served(one: ServedIn) -> str:
    tokens = "" if one.tokens is None else f", {count(one.tokens, 'token')}"
    said = [f"{_ref(one.iteration)}: {harmless(one.role)}{tokens}", _time(one.elapsed_ns)]
    said.append(f"{count(one.members, 'member')}")
    said += [f"{harmless(work.device)} busy {_time(work.busy_ns)}" for work in one.work]
    said += [f"{number:,} {domain} activities" for domain, number in one.other.items()]
    return ", ".join(said)


def _sums(iterations: Iterable[ServedIn]) -> Iterator[str]:
    """Say how much of the iterations' work is known; it is of all members together."""
    held = list(iterations)
    without = sum(not one.work for one in held)
    shared = sum(one.members > 1 for one in held)
    known = f"device work is known of {len(held) - without:,} of {len(held):,}"
    yield f"{known}; {shared:,} were shared with other requests"


def _time(ns: int | Gap[InferenceGap]) -> str:
    return f"time unknown ({ns.gap})" if isinstance(ns, Gap) else f"{ns / 1e6:,.3f} ms"


def _ref(ref: Ref) -> str:
    return harmless(f"{ref.producer_id} {ref.id}")
