"""Which iterations and which work served a request, by ids alone, and how much of that is known (IN-9, IN-12)."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from paritrace.errors import RequestError
from paritrace.evidence.gaps import Gap
from paritrace.evidence.ids import Ref
from paritrace.files import LOCAL, Files
from paritrace.inference.account_report import first_of, left_out
from paritrace.inference.artifact import Events, head_of, place_of
from paritrace.inference.context import ClockKind
from paritrace.inference.device_time import account
from paritrace.inference.gaps import InferenceGap
from paritrace.inference.importers.client_terms import REQUEST_ID, RESPONSE_ID
from paritrace.inference.linking import LinkTables
from paritrace.inference.records import Activity, AnyEvent, Iteration, Membership, Request, Stage
from paritrace.inference.request_joining import joins, sources_of
from paritrace.inference.result import VERSION, IterationTime
from paritrace.inference.served_result import ServedIn, ServedReport, ToldRequest, ToldStage
from paritrace.inference.sources import source_of
from paritrace.inference.vocabulary import Domain

SERVED_FORMAT = "paritrace-infer-request"
_MOST_SUGGESTED = 10


def served_request(path: Path, asked: str, *, files: Files = LOCAL) -> ServedReport:
    """Return what an artifact holds of a request, named by any id that a party has for it.

    Parties are joined where one names the other's request; never by time.

    Raises:
        RequestError: Refused, `no_such_request`.
        EvidenceError, HostError: Refused, as reading the artifact.
    """
    place = place_of(path)
    head = head_of(place, files=files)
    events = Events(place, files=files)
    told = _told(events, asked)
    if not told:
        raise _unknown(events, asked)
    tables = LinkTables(events)
    times = {one.iteration: one for one in account(events, tables=tables).iterations}
    refs = {ref for one in told for ref in (one.request_ref, one.attempt_ref) if ref is not None}
    found = _Membered(events, refs)
    others = _others(events, tables, {one.iteration_ref for one in found.memberships})
    iterations = [
        _served_in(one, times, members=found.sizes[one.iteration_ref], other=others.get(one.iteration_ref, Counter()))
        for one in found.memberships
    ]
    return ServedReport(
        format=SERVED_FORMAT,
        version=VERSION,
        artifact=source_of(place, head.context.facts.run_id, files=files),
        asked=asked,
        requests=tuple(_of_party(one) for one in told),
        stages=tuple(ToldStage(one.stage_ref, one.name, elapsed_of(one)) for one in found.stages),
        num_iterations=len(iterations) if iterations else Gap(InferenceGap.MEMBERSHIP_UNKNOWN),
        iterations=first_of(iterations),
        iterations_left_out=left_out(iterations),
        in_flight=_in_flight(events, told),
    )


def _told(events: Iterable[AnyEvent], asked: str) -> list[Request]:
    """Return every event of the request: those that bear the id, and those of other sources that are joined to them."""
    requests = [one for one in events if isinstance(one, Request)]
    refs = {one.request_ref for one in requests if asked in _names(one)}
    pairs = [{pair.first, pair.second} for of in joins(sources_of(requests)) for pair in of.joined]
    while more := {ref for pair in pairs if not refs.isdisjoint(pair) for ref in pair} - refs:
        refs |= more
    return sorted((one for one in requests if one.request_ref in refs), key=lambda one: (one.request_ref, one.event_id))


def _names(one: Request) -> set[object]:
    found: set[object] = {one.metadata.get(REQUEST_ID), one.metadata.get(RESPONSE_ID)}
    return found | {ref.id for ref in (one.request_ref, one.attempt_ref, one.backend_request_ref) if ref is not None}


class _Membered:
    """Memberships and stages of a request, and how many take part in each iteration."""

    def __init__(self, events: Iterable[AnyEvent], refs: set[Ref]) -> None:
        self.memberships: list[Membership] = []
        self.stages: list[Stage] = []
        parts: dict[Ref, set[Ref]] = {}
        for event in events:
            if isinstance(event, Membership):
                parts.setdefault(event.iteration_ref, set()).add(event.request_ref)
                if event.request_ref in refs or event.attempt_ref in refs:
                    self.memberships.append(event)
            elif isinstance(event, Stage) and event.request_ref in refs:
                self.stages.append(event)
        self.sizes = {ref: len(found) for ref, found in parts.items()}


def _served_in(one: Membership, times: dict[Ref, IterationTime], *, members: int, other: Counter[str]) -> ServedIn:
    time = times.get(one.iteration_ref)
    return ServedIn(
        iteration=one.iteration_ref,
        role=one.role,
        tokens=one.tokens,
        elapsed_ns=Gap(InferenceGap.NOT_TOLD) if time is None else time.elapsed_ns,
        members=members,
        work=() if time is None else time.work,
        other=dict(sorted(other.items())),
    )


def _others(events: Iterable[AnyEvent], tables: LinkTables, wanted: set[Ref]) -> dict[Ref, Counter[str]]:
    """Count what hosts did inside the iterations, by domain."""
    found: dict[Ref, Counter[str]] = {}
    for event in events:
        if isinstance(event, Activity) and event.domain is not Domain.GPU:
            iteration = tables.found(event).iteration
            if iteration is not None and iteration in wanted:
                found.setdefault(iteration, Counter())[event.domain.value] += 1
    return found


def _of_party(one: Request) -> ToldRequest:
    return ToldRequest(
        request=one.request_ref,
        attempt=one.attempt_ref,
        backend_request=one.backend_request_ref,
        source=one.context.facts.source,
        status=one.status,
        elapsed_ns=elapsed_of(one),
        input_tokens=one.input_tokens,
        output_tokens=one.output_tokens,
    )


def elapsed_of(one: Request | Stage) -> int | Gap[InferenceGap]:
    """Return how long something took; only a monotonic clock says it (IN-3)."""
    if one.start_ns is None or one.end_ns is None:
        return Gap(InferenceGap.NO_TIMES)
    if one.context.facts.clock_kind is not ClockKind.MONOTONIC:
        return Gap(InferenceGap.NOT_MONOTONIC, one.context.facts.clock_domain)
    return one.end_ns - one.start_ns


def _in_flight(events: Iterable[AnyEvent], told: list[Request]) -> int | Gap[InferenceGap]:
    """Count iterations that meet the request by one clock; unknown where no iteration shares a clock with it."""
    spans = [
        (one.context.facts.clock_domain, one.start_ns, one.end_ns)
        for one in told
        if one.start_ns is not None and one.end_ns is not None
    ]
    shared, met = False, set[Ref]()
    for event in events:
        if not isinstance(event, Iteration) or event.start_ns is None or event.end_ns is None:
            continue
        for domain, start_ns, end_ns in spans:
            if domain == event.context.facts.clock_domain:
                shared = True
                if event.start_ns <= end_ns and start_ns <= event.end_ns:
                    met.add(event.iteration_ref)
    return len(met) if shared else Gap(InferenceGap.NO_SHARED_CLOCK)


def _unknown(events: Iterable[AnyEvent], asked: str) -> RequestError:
    known = sorted({one.request_ref.id for one in events if isinstance(one, Request)})
    more = len(known) - _MOST_SUGGESTED
    shown = ", ".join(known[:_MOST_SUGGESTED]) + (f" and {more:,} more" if more > 0 else "")
    return RequestError(
        f"no event tells of a request {asked}",
        code="no_such_request",
        fix=f"name one of {shown}" if known else "import what a client, a proxy or an engine told of requests first",
    )
