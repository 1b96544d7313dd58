"""Spans of servers and clients as requests and stages (IN-14): joined by request id only, never by time."""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path

from paritrace.evidence.ids import Ref
from paritrace.evidence.plain_json import parse
from paritrace.inference.context import Context
from paritrace.inference.importers.span_documents import Span, spans_of
from paritrace.inference.importers.span_names import COUNTS, STAGES, Conflict, Meaning, Said, said
from paritrace.inference.importers.text_source import TextSource, head_of
from paritrace.inference.importing import Account, Asked, Events, Imported, Reader, SourceKind
from paritrace.inference.plain_values import whole
from paritrace.inference.records import Observation, Request, Stage
from paritrace.inference.vocabulary import LossReason

NAME = "otlp"
MOST_CONTEXTS = 10_000  # of services: beyond it the service is left out of the context
_ATTACHED = (Meaning.MODEL, Meaning.RESPONSE_MODEL, Meaning.OPERATION, Meaning.PROVIDER, Meaning.MAX_TOKENS)
_DURATIONS = (Meaning.TIME_TO_FIRST_TOKEN, Meaning.END_TO_END)
_MARKS = (b'"resourceSpans"', b'"start_unix_ns"', b'"span_id"', b'"spans"', b'"traceId"')


def recognises(path: Path) -> bool:
    """Says whether a file looks like spans."""
    head = head_of(path)
    return head.lstrip()[:1] == b"{" and any(mark in head for mark in _MARKS)


def open_spans(asked: Asked) -> Imported:
    """Opens one OTLP document, or lines of documents or of spans; see `importing`."""
    source = TextSource(asked, reader=NAME)
    return Imported((source.reference("application/json"),), _Spans(source).events())


class _Spans:
    """One file of spans as it is read."""

    def __init__(self, source: TextSource) -> None:
        self._source = source
        self._counts: Counter[str] = Counter()
        self._contexts: dict[str | None, Context] = {}
        self._ids: set[str] = set()

    def events(self) -> Events:
        documents = self._documents()
        first = next(documents, None)
        for line, document in chain(() if first is None else (first,), documents):
            found = spans_of(document)
            if found is None:
                self._counts["documents_without_spans"] += 1
                continue
            for span in found:
                self._counts["spans"] += 1
                yield from self._span(span, line)
        own = self._context(None)
        for what in ("lines_invalid", "documents_without_spans"):
            if self._counts[what]:
                yield self._source.loss(own, what, LossReason.INVALID, count=self._counts[what])
        return self._account()

    def _documents(self) -> Iterator[tuple[int, object]]:
        """The documents of the file: one a line, or one that stands over many lines."""
        lines = self._source.lines()
        first = next((line for line in lines if line.data is None or line.data.strip()), None)
        if first is None:
            return
        alone = parse(first.data or b"", path=self._source.path.name, within_64_bits=True)
        if alone.value is None:
            whole = self._source.document()
            if whole.value is not None:
                self._counts["values_not_read"] += len(whole.refusals)
                yield 1, whole.value
                return
        for line in chain((first,), lines):
            if line.data is not None and not line.data.strip():
                continue
            parsed = parse(line.data or b"", path=self._source.path.name, within_64_bits=True)
            if parsed.value is None:
                self._counts["lines_invalid"] += 1
            else:
                self._counts["values_not_read"] += len(parsed.refusals)
                yield line.number, parsed.value

    def _span(self, span: Span, line: int) -> Iterator[Observation]:
        meant = said(span.attributes)
        request_id = _text(meant.get(Meaning.REQUEST_ID)) or _text(meant.get(Meaning.RESPONSE_ID))
        if request_id is None:
            self._counts["spans_without_request_id"] += 1
            return
        if span.time_remark:
            self._counts["spans_without_times"] += 1
        context = self._context(span.service)
        ref = Ref(self._source.attachment_id, request_id)
        place = f"{line}{span.pointer}"
        again = request_id in self._ids
        self._ids.add(request_id)
        self._counts["requests"] += not again
        self._counts["spans_of_a_request_seen_before"] += again
        yield Request(
            context=context,
            event_id=self._source.event_id(place),
            request_ref=ref,
            attempt_ref=Ref(self._source.attachment_id, span.span_id or place),
            backend_request_ref=ref,
            start_ns=span.start_ns,
            end_ns=span.end_ns,
            status=None if span.failed is None else "failed" if span.failed else "successful",
            input_tokens=_count(meant.get(Meaning.INPUT_TOKENS)),
            output_tokens=_count(meant.get(Meaning.OUTPUT_TOKENS)),
            metadata=_metadata(span, meant, line),
        )
        yield from self._stages(meant, context, ref=ref, place=place)

    def _stages(
        self, meant: Mapping[Meaning, Said | Conflict], context: Context, *, ref: Ref, place: str
    ) -> Iterator[Observation]:
        """How long a request was where, as the server reports it: it does not say when."""
        for meaning in STAGES:
            told = meant.get(meaning)
            seconds = _seconds(told)
            if seconds is None or not isinstance(told, Said):
                continue
            self._counts["stages"] += 1
            yield Stage(
                context=context,
                event_id=self._source.event_id(place, meaning.value),
                stage_ref=Ref(self._source.attachment_id, f"{place}:{meaning.value}"),
                name=meaning.value,
                request_ref=ref,
                metadata={"attribute": told.name, "convention": told.convention.value, "reported_seconds": seconds},
            )

    def _context(self, service: str | None) -> Context:
        known = service if service in self._contexts or len(self._contexts) < MOST_CONTEXTS else None
        if known not in self._contexts:
            self._contexts[known] = self._source.context(engine=known)
        return self._contexts[known]

    def _account(self) -> Account:
        counts = {name: count for name, count in sorted(self._counts.items()) if count}
        limits = ["spans are joined to requests of other sources by request id only"]
        if self._counts["stages"]:
            limits.append("stages have a duration that the server reports and no times")
        if self._counts["spans_without_times"]:
            limits.append("some spans have no times in nanoseconds since the epoch: times of theirs are not read")
        if not self._counts["requests"]:
            limits.append("no span names a request id (gen_ai.request.id, gen_ai.response.id)")
        broken = any(self._counts[name] for name in ("lines_invalid", "documents_without_spans", "values_not_read"))
        return Account(complete=bool(self._counts["spans"]) and not broken, counts=counts, limits=tuple(limits))


def _metadata(span: Span, meant: Mapping[Meaning, Said | Conflict], line: int) -> dict[str, object]:
    """What is kept of a span beyond the fields: by an allow list, each with the name it was given by (P7)."""
    known: dict[str, object] = {"line": line, "pointer": span.pointer, "span": span.name[:200]}
    ids = {"trace_id": span.trace_id, "span_id": span.span_id, "parent_span_id": span.parent_span_id}
    known |= {name: value for name, value in ids.items() if value is not None}
    if span.time_remark:
        known["times"] = span.time_remark
    sources: dict[str, object] = {}
    conflicts: list[object] = []
    for meaning, told in meant.items():
        if isinstance(told, Conflict):
            conflicts.append(list(told.names))
            continue
        sources[meaning.value] = {"attribute": told.name, "convention": told.convention.value}
        if meaning in _ATTACHED:
            known[meaning.value] = told.value if not isinstance(told.value, str) else told.value[:1000]
        if meaning in _DURATIONS and _seconds(told) is not None:
            known[f"{meaning.value}_seconds"] = _seconds(told)
        if meaning in COUNTS[2:] and _count(told) is not None:
            known[meaning.value] = _count(told)
    if conflicts:
        known["conflicts"] = conflicts
    return known | {"names": sources}


def _text(told: Said | Conflict | None) -> str | None:
    return told.value if isinstance(told, Said) and isinstance(told.value, str) and told.value else None


def _count(told: Said | Conflict | None) -> int | None:
    return whole(told.value) if isinstance(told, Said) else None


def _seconds(told: Said | Conflict | None) -> float | None:
    value = told.value if isinstance(told, Said) else None
    known = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
    return float(value) if known and value is not None else None


READER = Reader(
    name=NAME,
    kind=SourceKind.SPANS,
    reads="spans as OTLP/JSON, JSON Lines of it, or flat spans a line",
    recognises=recognises,
    open=open_spans,
)
