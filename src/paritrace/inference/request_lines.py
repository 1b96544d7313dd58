"""The requests of an artifact, each as one party tells it, stretch by stretch (IN-1, IN-3)."""

from msgspec import Struct

from paritrace.evidence.gaps import Gap
from paritrace.evidence.ids import Ref
from paritrace.inference.artifact import Events
from paritrace.inference.gaps import InferenceGap
from paritrace.inference.records import Membership, Request
from paritrace.inference.serving_request import elapsed_of


class RequestLine(Struct, frozen=True, kw_only=True):
    """A request, or one attempt at it, as its source tells it.

    `iterations`: how many it is told to have taken part in; unknown where no source says it of any.
    """

    line: int
    request: Ref
    attempt: Ref | None
    source: str
    status: str | None
    elapsed_ns: int | Gap[InferenceGap]
    input_tokens: int | None
    output_tokens: int | None
    iterations: int | Gap[InferenceGap]


class RequestLines(Struct, frozen=True):
    """A stretch of all requests in the order of the artifact; `total`: how many there are."""

    total: int
    offset: int
    requests: tuple[RequestLine, ...]


def request_lines(events: Events, *, offset: int, limit: int) -> RequestLines:
    """Return a stretch of the requests; the artifact is read once, and memory is the stretch and the memberships.

    Raises:
        EvidenceError, HostError: Refused, as reading the artifact.
    """
    taken: dict[Ref, set[Ref]] = {}
    held: list[tuple[int, Request]] = []
    total = 0
    for number, event in events.numbered():
        if isinstance(event, Membership):
            for ref in (event.request_ref, event.attempt_ref):
                if ref is not None:
                    taken.setdefault(ref, set()).add(event.iteration_ref)
        elif isinstance(event, Request):
            if offset <= total < offset + limit:
                held.append((number, event))
            total += 1
    return RequestLines(total, offset, tuple(_line(number, one, taken) for number, one in held))


def _line(number: int, one: Request, taken: dict[Ref, set[Ref]]) -> RequestLine:
    served = taken.get(one.attempt_ref or one.request_ref, set())
    return RequestLine(
        line=number,
        request=one.request_ref,
        attempt=one.attempt_ref,
        source=one.context.facts.source,
        status=one.status,
        elapsed_ns=elapsed_of(one),
        input_tokens=one.input_tokens,
        output_tokens=one.output_tokens,
        iterations=len(served) if served else Gap(InferenceGap.NOT_TOLD),
    )
