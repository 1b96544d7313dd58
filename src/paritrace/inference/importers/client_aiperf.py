"""Records of AIPerf's `profile_export.jsonl`, one request a line (IN-15)."""

from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from math import isfinite
from pathlib import Path

from paritrace.evidence.ids import Ref
from paritrace.evidence.plain_json import elements, is_object, members, parse
from paritrace.inference.context import Context
from paritrace.inference.importers.client_terms import REQUEST_ID, TIMINGS, Outcome, Timing
from paritrace.inference.importers.text_source import Line, TextSource, head_of
from paritrace.inference.importing import Account, Asked, Events, Imported, Reader, SourceKind
from paritrace.inference.plain_values import whole
from paritrace.inference.records import Request
from paritrace.inference.vocabulary import LossReason

NAME = "aiperf"
PHASE = "benchmark_phase"
_NS_PER = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "sec": 1_000_000_000}
_LATENCIES = (
    ("time_to_first_token", Timing.TIME_TO_FIRST_OUTPUT),
    ("request_latency", Timing.LATENCY),
    ("inter_token_latency", Timing.MEAN_BETWEEN_TOKENS),
)
_SCHEDULED = "credit_issued_ns"
_KEPT = ("x_correlation_id", "conversation_id", "turn_index", "session_num", "worker_id", PHASE)
_TIMEOUTS = frozenset({408, 504})
_CANCELLED = 499


def recognises(path: Path) -> bool:
    """Says whether a file looks like AIPerf's records."""
    head = head_of(path)
    return head.lstrip()[:1] == b"{" and b'"request_start_ns"' in head and b'"metrics"' in head


def open_records(asked: Asked) -> Imported:
    """Opens the records of one benchmark; see `importing`."""
    source = TextSource(asked, reader=NAME)
    return Imported((source.reference("application/x-ndjson"),), _events(source))


def _events(source: TextSource) -> Events:
    context = source.context()
    counts: Counter[str] = Counter()
    torn = False
    for line in source.lines():
        if line.data is not None and not line.data.strip():
            continue
        torn = not line.whole
        record, refused = _record(source, line)
        counts["values_not_read"] += refused
        if record is None:
            counts["lines_invalid"] += 1
            continue
        request = _request(record, source=source, context=context, line=line.number)
        counts[f"requests:{request.status}"] += 1
        scheduled = Timing.SCHEDULED.value in members(request.metadata.get(TIMINGS))
        counts["with_schedule" if scheduled else "without_schedule"] += 1
        yield request
    if counts["lines_invalid"]:
        reason = LossReason.TORN_TAIL if torn and counts["lines_invalid"] == 1 else LossReason.INVALID
        yield source.loss(context, "lines", reason, count=counts["lines_invalid"])
    limits = [
        "latencies are as AIPerf measured them; start and end are of its wall clock, and no duration is taken of them",
    ]
    if counts["without_schedule"] or not counts["with_schedule"]:
        limits.append("when a request was meant to be sent is not recorded of all: latencies are service times")
    else:
        limits.append(
            "scheduled: when AIPerf issued a request's credit; in a closed loop that is when a slot fell free"
        )
    broken = counts["lines_invalid"] or counts["values_not_read"]
    return Account(
        complete=not broken,
        counts={name: count for name, count in sorted(counts.items()) if count},
        limits=tuple(limits),
    )


def _record(source: TextSource, line: Line) -> tuple[Mapping[str, object] | None, int]:
    parsed = parse(line.data or b"", path=source.path.name, first_line=line.number, within_64_bits=True)
    value = parsed.value
    usable = is_object(value) and "metadata" in value
    return (value if usable else None), (len(parsed.refusals) if usable else 0)


def _request(record: Mapping[str, object], *, source: TextSource, context: Context, line: int) -> Request:
    meta, metrics, error = members(record["metadata"]), members(record.get("metrics")), members(record.get("error"))
    start, end = whole(meta.get("request_start_ns")), whole(meta.get("request_end_ns"))
    status = _outcome(cancelled=meta.get("was_cancelled") is True, error=error)
    request_id = meta.get("x_request_id")
    named = request_id if isinstance(request_id, str) and request_id else str(line)
    return Request(
        context=context,
        event_id=source.event_id(line),
        request_ref=Ref(source.attachment_id, named),
        attempt_ref=Ref(source.attachment_id, str(line)),
        start_ns=start,
        end_ns=None if start is not None and end is not None and end < start else end,
        status=status.value,
        input_tokens=_tokens(metrics, "input_sequence_length", "error_isl"),
        output_tokens=_tokens(metrics, "output_sequence_length", "output_token_count"),
        metadata=_metadata(meta, metrics, error) | {"line": line},
    )


def _outcome(*, cancelled: bool, error: Mapping[str, object]) -> Outcome:
    code = error.get("code")
    if cancelled or code == _CANCELLED:
        return Outcome.CANCELLED
    if not error:
        return Outcome.SUCCESSFUL
    kind = str(error.get("type") or "")
    if code in _TIMEOUTS or "timeout" in kind.lower():
        return Outcome.TIMED_OUT
    if isinstance(code, int) and (400 <= code < 500 or code == 503):
        return Outcome.REJECTED
    return Outcome.FAILED


def _metadata(
    meta: Mapping[str, object], metrics: Mapping[str, object], error: Mapping[str, object]
) -> dict[str, object]:
    """What is kept beside the fields, by an allow list: an error's text is not (P7)."""
    known: dict[str, object] = {
        name: meta[name] for name in _KEPT if isinstance(meta.get(name), str | int) and meta.get(name) != ""
    }
    if isinstance(meta.get("x_request_id"), str):
        known[REQUEST_ID] = meta["x_request_id"]
    timings: dict[str, object] = {}
    scheduled_ns = whole(meta.get(_SCHEDULED))
    if scheduled_ns is not None:
        timings[Timing.SCHEDULED.value] = scheduled_ns
    for name, timing in _LATENCIES:
        ns = _nanoseconds(metrics.get(name))
        if ns is not None:
            timings[timing.value] = ns
    if timings:
        known[TIMINGS] = timings
    chunks = elements(members(metrics.get("inter_chunk_latency")).get("value"))
    if chunks:
        known["num_chunks"] = len(chunks) + 1
    for name in ("code", "type"):
        if isinstance(error.get(name), str | int):
            known[f"error_{name}"] = error[name]
    return known


def _nanoseconds(metric: object) -> int | None:
    value, unit = members(metric).get("value"), members(metric).get("unit")
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or not 0 < value < 1e18:
        return None
    scale = _NS_PER.get(unit) if isinstance(unit, str) else None
    return None if scale is None else int((Decimal(str(value)) * scale).to_integral_value())


def _tokens(metrics: Mapping[str, object], *names: str) -> int | None:
    found = (whole(members(metrics.get(name)).get("value")) for name in names)
    return next((one for one in found if one is not None), None)


READER = Reader(
    name=NAME,
    kind=SourceKind.CLIENT,
    reads="AIPerf's profile_export.jsonl",
    recognises=recognises,
    open=open_records,
)
