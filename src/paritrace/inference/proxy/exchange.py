"""One exchange through the proxy: what was seen of it, how it went, and the events that say so (IN-15). Pure."""

from collections.abc import Mapping
from enum import StrEnum

import msgspec
from msgspec import Struct

from paritrace.evidence.ids import Ref
from paritrace.evidence.plain_json import is_object, members
from paritrace.inference.context import Context
from paritrace.inference.importers.client_terms import REQUEST_ID, RESPONSE_ID, TIMINGS, Outcome, Timing
from paritrace.inference.importers.openai_stream import OUTPUT, StreamEnd, StreamFacts, StreamReader, usage_of
from paritrace.inference.records import Request, Stage

MOST_KEPT_BYTES = 1 << 20  # of a body that is looked at for its model, its usage, its id
MOST_CONTENT = 64 << 10  # characters of a body that are kept, where content was asked for
IN_FLIGHT = "in_flight"
LATE_HEADER = "x-paritrace-late-ns"
ID_HEADERS = ("x-request-id", "x-correlation-id")
MOST_WHOLE = 1 << 63
MOST_LATE_DIGITS = 15  # eleven days
_ASKED = ("model", "stream", "max_tokens", "max_completion_tokens", "n", "temperature", "top_p", "seed")
_TIMED_OUT, _UNAVAILABLE = (408, 504), (429, 503)


class Broken(StrEnum):
    """What ended an exchange before its answer was whole."""

    UNREACHABLE = "upstream_unreachable"
    NO_ANSWER = "upstream_gave_no_answer"  # it was sent; whether it arrived is not known
    TIMED_OUT = "upstream_silent"
    CUT = "upstream_ended_inside_the_answer"
    CLIENT_LEFT = "client_left"
    BAD_REQUEST = "request_not_forwarded"
    PROXY_ENDED = "proxy_ended"


class Kept:
    """The first bytes of a body, and how many there were in all."""

    def __init__(self) -> None:
        self.num_bytes = 0
        self._kept = bytearray()

    def take(self, data: bytes) -> None:
        self._kept += data[: max(0, MOST_KEPT_BYTES - self.num_bytes)]
        self.num_bytes += len(data)

    @property
    def whole(self) -> bool:
        return self.num_bytes <= MOST_KEPT_BYTES

    def object(self) -> dict[str, object]:
        """The body as a JSON object; nothing where it is none, or is not kept whole."""
        if not self.whole:
            return {}
        try:
            value = msgspec.json.decode(bytes(self._kept))
        except (msgspec.DecodeError, RecursionError):
            return {}
        return value if is_object(value) else {}

    def text(self) -> str:
        return bytes(self._kept).decode("utf-8", "replace")[:MOST_CONTENT]


class Exchange:
    """What the proxy sees of one request; all times are of one monotonic clock, in nanoseconds."""

    def __init__(self, number: int, *, method: str, path: str, began_ns: int) -> None:
        self.number = number
        self.method = method
        self.path = path
        self.began_ns = began_ns
        self.sent_ns: int | None = None
        self.first_byte_ns: int | None = None
        self.ended_ns: int | None = None
        self.request_id: str | None = None
        self.late_ns: int | None = None
        self.http_status: int | None = None
        self.is_stream = False
        self.observed = True  # every event of the stream was looked at
        self.broken: Broken | None = None
        self.asked, self.answered = Kept(), Kept()
        self._stream = StreamReader()
        self._outputs = 0
        self._first_output_ns: int | None = None
        self._last_output_ns: int | None = None
        self._longest_ns = 0

    def took(self, headers: Mapping[str, str]) -> None:
        """Keeps a request id that a header gives; the client's comes first."""
        found = next((headers[name] for name in ID_HEADERS if headers.get(name)), None)
        if self.request_id is None and found is not None:
            self.request_id = found[:200]

    def scheduled(self, headers: Mapping[str, str]) -> None:
        """Keeps how late the client says that it is: a duration, so that no clocks are compared (IN-27)."""
        told = headers.get(LATE_HEADER, "")
        self.late_ns = int(told) if told.isascii() and told.isdecimal() and len(told) <= MOST_LATE_DIGITS else None

    def event(self, data: str, *, at_ns: int) -> None:
        """Takes one event of the answer's stream and when it arrived."""
        if self._stream.take(data) not in OUTPUT:
            return
        if self._last_output_ns is None:
            self._first_output_ns = at_ns
        else:
            self._longest_ns = max(self._longest_ns, at_ns - self._last_output_ns)
        self._outputs += 1
        self._last_output_ns = at_ns

    @property
    def facts(self) -> StreamFacts:
        """What the answer says; a whole JSON answer says it at once."""
        if self.is_stream:
            return self._stream.facts()
        answer = self.answered.object()
        usage = answer.get("usage")
        named, model = answer.get("id"), answer.get("model")
        return StreamFacts(
            end=StreamEnd.COMPLETE,
            response_id=named[:200] if isinstance(named, str) else None,
            model=model[:200] if isinstance(model, str) else None,
            events={},
            finish_reasons={},
            usage=usage_of(usage) if is_object(usage) else None,
            error_type=_error_type(answer),
        )

    @property
    def outcome(self) -> Outcome:
        """How it went, by what was seen."""
        if self.broken is not None:
            return self._broken_outcome(self.broken)
        status = self.http_status
        if status is None:
            return Outcome.DELIVERY_UNKNOWN
        if status in _TIMED_OUT:
            return Outcome.TIMED_OUT
        if status in _UNAVAILABLE or 400 <= status < 500:
            return Outcome.REJECTED
        if status >= 500:
            return Outcome.FAILED
        return self._stream_outcome()

    def _stream_outcome(self) -> Outcome:
        if not self.is_stream:
            return Outcome.SUCCESSFUL
        match self.facts.end:
            case StreamEnd.COMPLETE:
                return Outcome.SUCCESSFUL
            case StreamEnd.INCOMPLETE:
                return Outcome.INCOMPLETE
            case StreamEnd.ERROR:
                return Outcome.FAILED

    def _broken_outcome(self, broken: Broken) -> Outcome:
        match broken:
            case Broken.UNREACHABLE | Broken.BAD_REQUEST:
                return Outcome.UNREACHABLE if broken is Broken.UNREACHABLE else Outcome.REJECTED
            case Broken.NO_ANSWER:
                return Outcome.DELIVERY_UNKNOWN
            case Broken.TIMED_OUT:
                return Outcome.TIMED_OUT
            case Broken.CUT | Broken.PROXY_ENDED:
                return Outcome.INCOMPLETE
            case Broken.CLIENT_LEFT:  # after the last event of a stream a client may leave at once
                whole = self.is_stream and self.facts.end is StreamEnd.COMPLETE
                return Outcome.SUCCESSFUL if whole else Outcome.CANCELLED

    def timings(self) -> dict[str, object]:
        """Durations since the request's first byte arrived at the proxy, and between outputs."""
        found: dict[str, object] = {}
        for name, at_ns in (
            (Timing.SENT, self.sent_ns),
            (Timing.TIME_TO_FIRST_BYTE, self.first_byte_ns),
            (Timing.TIME_TO_FIRST_OUTPUT, self._first_output_ns),
        ):
            if at_ns is not None:
                found[name.value] = at_ns if name is Timing.SENT else at_ns - self.began_ns
        if self.late_ns is not None:
            found[Timing.SCHEDULED.value] = self.began_ns - self.late_ns
        if self.ended_ns is not None and self.outcome is Outcome.SUCCESSFUL:
            found[Timing.LATENCY.value] = self.ended_ns - self.began_ns
        if self._outputs > 1 and self._last_output_ns is not None and self._first_output_ns is not None:
            between = (self._last_output_ns - self._first_output_ns) / (self._outputs - 1)
            found[Timing.MEAN_BETWEEN_CHUNKS.value] = round(between)
            found[Timing.LONGEST_BETWEEN_CHUNKS.value] = self._longest_ns
        return found


class Recorder(Struct, frozen=True):
    """Who records: the context of its events, the names of itself and of the upstream, whether bodies are kept."""

    context: Context
    producer: str
    upstream: str
    content: bool = False

    def started(self, exchange: Exchange) -> Stage:
        """The event that a request is under way: it stays alone where the proxy is killed before the end."""
        ref = self._ref(exchange)
        return Stage(
            context=self.context,
            event_id=f"{self.producer}:{exchange.number}:{IN_FLIGHT}",
            stage_ref=Ref(self.producer, f"{exchange.number}:{IN_FLIGHT}"),
            name=IN_FLIGHT,
            request_ref=ref,
            start_ns=exchange.began_ns,
        )

    def ended(self, exchange: Exchange) -> Request:
        """The event of a request that has ended."""
        facts = exchange.facts
        named = facts.response_id
        return Request(
            context=self.context,
            event_id=f"{self.producer}:{exchange.number}",
            request_ref=self._ref(exchange),
            backend_request_ref=None if named is None else Ref(self.upstream, named),
            start_ns=exchange.began_ns,
            end_ns=exchange.ended_ns,
            status=exchange.outcome.value,
            input_tokens=facts.usage.input_tokens if facts.usage else None,
            output_tokens=facts.usage.output_tokens if facts.usage else None,
            metadata=self._metadata(exchange, facts),
        )

    def _ref(self, exchange: Exchange) -> Ref:
        return Ref(self.producer, str(exchange.number))

    def _metadata(self, exchange: Exchange, facts: StreamFacts) -> dict[str, object]:
        """What is kept beside the fields, by an allow list (P7)."""
        asked = exchange.asked.object()
        further: dict[str, object] = {
            REQUEST_ID: exchange.request_id,
            RESPONSE_ID: facts.response_id,
            "asked": {name: _told(asked[name]) for name in _ASKED if isinstance(asked.get(name), str | int | float)}
            or None,
            "broken": exchange.broken.value if exchange.broken is not None else None,
            "content": self._content(exchange) if self.content else None,
            "error_type": facts.error_type,
            "events": facts.events or None,
            "finish_reasons": facts.finish_reasons or None,
            "http_status": exchange.http_status,
            "model": facts.model,
            "observed": exchange.observed if exchange.is_stream else None,
            "stream": facts.end.value if exchange.is_stream else None,
            "why_incomplete": facts.why_incomplete or None if exchange.is_stream else None,
        }
        return {
            "method": exchange.method,
            "path": exchange.path[:500],
            "request_bytes": exchange.asked.num_bytes,
            "response_bytes": exchange.answered.num_bytes,
            TIMINGS: exchange.timings(),
        } | {name: value for name, value in further.items() if value is not None}

    def _content(self, exchange: Exchange) -> dict[str, object]:
        bodies = {"request": exchange.asked, "response": exchange.answered}
        return {
            name: {"text": body.text(), "cut": len(body.text()) >= MOST_CONTENT or not body.whole}
            for name, body in bodies.items()
        }


def _told(value: object) -> object:
    """A value as it is kept; a number that no field of ours holds as the text that it is."""
    return str(value) if isinstance(value, int) and abs(value) >= MOST_WHOLE else value


def _error_type(answer: Mapping[str, object]) -> str | None:
    found = members(answer.get("error")).get("type")
    return found[:200] if isinstance(found, str) else None
