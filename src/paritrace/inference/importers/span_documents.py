"""Spans out of OTLP/JSON, of its JSON Lines, and of flat span files: pure (IN-14)."""

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

from paritrace.evidence.plain_json import elements, is_object, members

_HEX = re.compile(r"[0-9a-fA-F]{1,64}\Z")
_DIGITS = re.compile(r"[0-9]{1,19}\Z")
MOST_NS = 2**63 - 1
MOST_DEPTH = 16  # of nested attribute values


class Span(Struct, frozen=True):
    """One span: wall times in nanoseconds where they are given as such, and its attributes as plain values.

    `pointer`: JSON Pointer of the span inside its document. `time_remark`: why a time is not there.
    """

    name: str
    trace_id: str | None
    span_id: str | None
    parent_span_id: str | None
    start_ns: int | None
    end_ns: int | None
    attributes: dict[str, object]
    service: str | None
    scope: str | None
    failed: bool | None
    pointer: str
    time_remark: str = ""


def spans_of(document: object, *, pointer: str = "") -> Iterator[Span] | None:
    """Returns the spans of a parsed document, None where it is no document of spans.

    OTLP (`resourceSpans`), one flat span, or an object with a list `spans`.
    """
    top = members(document)
    if "resourceSpans" in top:
        return _of_otlp(elements(top["resourceSpans"]), pointer)
    if "spans" in top and "scope" not in top:
        return _of_list(elements(top["spans"]), pointer)
    if isinstance(top.get("name"), str) and "attributes" in top:
        return iter((_flat(top, pointer),))
    return None


def _of_otlp(resources: list[object], pointer: str) -> Iterator[Span]:
    for r, resource in enumerate(resources):
        own = attributes_of(members(members(resource).get("resource")).get("attributes"))
        service = own.get("service.name")
        held = "scopeSpans" if "scopeSpans" in members(resource) else "instrumentationLibrarySpans"
        for s, scoped in enumerate(elements(members(resource).get(held))):
            scope = members(members(scoped).get("scope")).get("name")
            for n, span in enumerate(elements(members(scoped).get("spans"))):
                if is_object(span):
                    at = f"{pointer}/resourceSpans/{r}/{held}/{s}/spans/{n}"
                    yield _otlp(span, at, service=_text(service), scope=_text(scope))


def _otlp(span: Mapping[str, object], pointer: str, *, service: str | None, scope: str | None) -> Span:
    start, end = _unix_ns(span.get("startTimeUnixNano")), _unix_ns(span.get("endTimeUnixNano"))
    return Span(
        name=_text(span.get("name")) or "",
        trace_id=_id(span.get("traceId")),
        span_id=_id(span.get("spanId")),
        parent_span_id=_id(span.get("parentSpanId")),
        start_ns=start,
        end_ns=end if start is None or end is None or end >= start else None,
        attributes=attributes_of(span.get("attributes")),
        service=service,
        scope=scope,
        failed=_failed(members(span.get("status")).get("code")),
        pointer=pointer,
        time_remark=_remark(start, end),
    )


def _of_list(spans: list[object], pointer: str) -> Iterator[Span]:
    for n, span in enumerate(spans):
        if is_object(span):
            yield _flat(span, f"{pointer}/spans/{n}")


def _flat(span: Mapping[str, object], pointer: str) -> Span:
    start, end = _unix_ns(span.get("start_unix_ns")), _unix_ns(span.get("end_unix_ns"))
    without_zone = start is None and end is None and isinstance(span.get("start_time"), str)
    return Span(
        name=_text(span.get("name")) or "",
        trace_id=_id(span.get("trace_id")),
        span_id=_text(span.get("span_id")),
        parent_span_id=_text(span.get("parent_span_id")),
        start_ns=start,
        end_ns=end if start is None or end is None or end >= start else None,
        attributes=dict(members(span.get("attributes"))),
        service=_text(members(span.get("resource_attributes")).get("service.name")),
        scope=None,
        failed=_failed(members(span.get("status")).get("code")),
        pointer=pointer,
        time_remark="times are text, not nanoseconds since the epoch: not read"
        if without_zone
        else _remark(start, end),
    )


def _remark(start: int | None, end: int | None) -> str:
    if start is None:
        return "no start"
    if end is None:
        return "no end: unfinished"
    return "ends before it starts: the end is not read" if end < start else ""


def attributes_of(value: object) -> dict[str, object]:
    """Returns OTLP attributes as plain values; one that stands twice with different values is left out."""
    found: dict[str, object] = {}
    torn: set[str] = set()
    for entry in elements(value):
        key = members(entry).get("key")
        if not isinstance(key, str):
            continue
        plain = _any_value(members(entry).get("value"), depth=0)
        if key in found and found[key] != plain:
            torn.add(key)
        found[key] = plain
    return {key: one for key, one in found.items() if key not in torn}


def _any_value(value: object, *, depth: int) -> object:
    held = members(value)
    if depth > MOST_DEPTH:
        return None
    if "intValue" in held:
        return _integer(held["intValue"])
    if "arrayValue" in held:
        return [_any_value(one, depth=depth + 1) for one in elements(members(held["arrayValue"]).get("values"))]
    if "kvlistValue" in held:
        pairs = elements(members(held["kvlistValue"]).get("values"))
        return {str(members(one).get("key")): _any_value(members(one).get("value"), depth=depth + 1) for one in pairs}
    return next((held[name] for name in ("stringValue", "boolValue", "doubleValue") if name in held), None)


def _integer(value: object) -> int | None:
    """An int64, which JSON of protobuf writes as a string."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str) and _DIGITS.match(value.removeprefix("-")) is not None:
        return int(value)
    return None


def _unix_ns(value: object) -> int | None:
    found = _integer(value)
    return found if found is not None and 0 < found <= MOST_NS else None


def _id(value: object) -> str | None:
    """A trace or span id in lower case: receivers take both cases for one id."""
    text = _text(value)
    return text.lower() if text is not None and _HEX.match(text) is not None else text


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _failed(code: object) -> bool | None:
    if code in (2, "STATUS_CODE_ERROR"):
        return True
    return False if code in (1, "STATUS_CODE_OK") else None
