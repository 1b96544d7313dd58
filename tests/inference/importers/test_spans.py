"""Spans become requests and stages, named by what their attributes mean (IN-14)."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paritrace.inference.importers.span_documents import attributes_of, spans_of
from paritrace.inference.importers.span_names import Conflict, Convention, Meaning, Said, said
from paritrace.inference.importers.spans import open_spans, recognises
from tests.inference.importers.drawn import DATA, drawn, written

VLLM = DATA / "vllm" / "q05_spans_sample.jsonl"
OTEL = DATA / "otel"
START, END = 1_544_712_660_000_000_123, 1_544_712_661_000_000_456


def otlp(attributes: dict[str, object], **fields: object) -> dict[str, object]:
    span = {
        "traceId": "5B8EFFF798038103D269B633813FC60C",
        "spanId": "EEE19B7EC3C1B174",
        "name": "llm_request",
        "startTimeUnixNano": str(START),
        "endTimeUnixNano": str(END),
        "attributes": [{"key": key, "value": value} for key, value in attributes.items()],
        **fields,
    }
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "vllm-server"}}]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "vllm"}, "spans": [span]}]}]}


def test_the_spans_of_a_real_vllm_become_requests_and_stages() -> None:
    found = drawn(open_spans, VLLM)
    assert found.account.counts == {"requests": 12, "spans": 16, "spans_without_request_id": 4, "stages": 48}
    first = found.requests[0]
    assert first.request_ref.id == "cmpl-q05-warmup-r0000-0"
    assert (first.start_ns, first.end_ns) == (1_790_960_617_392_174_336, 1_790_960_617_881_833_007)
    assert (first.input_tokens, first.output_tokens) == (512, 128)
    assert first.metadata["names"]["input_tokens"] == {
        "attribute": "gen_ai.usage.prompt_tokens",
        "convention": "vllm",
    }
    stages = [one for one in found.stages if one.request_ref == first.request_ref]
    assert [one.name for one in stages] == ["queue", "prefill", "decode", "inference"]
    assert all(one.start_ns is None and one.end_ns is None for one in stages)  # the server says how long, not when
    assert stages[1].metadata["reported_seconds"] == 0.027541324496269226


def test_names_of_the_conventions_are_taken_from_otlp(tmp_path: Path) -> None:
    document = otlp(
        {
            "gen_ai.response.id": {"stringValue": "chatcmpl-7"},
            "gen_ai.usage.input_tokens": {"intValue": "12"},
            "gen_ai.usage.output_tokens": {"intValue": 3},
            "gen_ai.operation.name": {"stringValue": "chat"},
        },
        status={"code": 2},
    )
    (request,) = drawn(open_spans, written(tmp_path, json.dumps(document, indent=1))).requests
    assert (request.request_ref.id, request.input_tokens, request.output_tokens) == ("chatcmpl-7", 12, 3)
    assert (request.start_ns, request.end_ns, request.status) == (START, END, "failed")  # exact: no float in between
    assert request.context.facts.engine == "vllm-server"
    assert request.metadata["operation"] == "chat"
    assert request.metadata["names"]["input_tokens"]["convention"] == Convention.GEN_AI.value


def test_two_names_that_disagree_give_neither_value() -> None:
    meant = said({"gen_ai.usage.input_tokens": 5, "gen_ai.usage.prompt_tokens": 6, "gen_ai.system": "vllm"})
    assert meant[Meaning.INPUT_TOKENS] == Conflict(("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"))
    assert meant[Meaning.PROVIDER] == Said("vllm", "gen_ai.system", Convention.GEN_AI_EARLIER)
    assert said({"gen_ai.usage.input_tokens": 5, "gen_ai.usage.prompt_tokens": 5})[Meaning.INPUT_TOKENS] == Said(
        5, "gen_ai.usage.input_tokens", Convention.GEN_AI
    )


def test_prompts_and_answers_of_a_span_are_not_kept(tmp_path: Path) -> None:
    secret = "what nobody may read"
    span = {
        "name": "chat",
        "start_unix_ns": 5,
        "end_unix_ns": 9,
        "attributes": {"gen_ai.request.id": "r", "gen_ai.input.messages": secret, "gen_ai.output.text": secret},
    }
    found = drawn(open_spans, written(tmp_path, json.dumps(span)))
    assert len(found.requests) == 1
    assert secret not in repr(found.events)


@pytest.mark.parametrize("name", ["inferenceperf_simple_chain.json", "inferenceperf_parallel_requests.json"])
def test_spans_without_a_request_id_are_counted_and_not_guessed(name: str) -> None:
    found = drawn(open_spans, OTEL / name)
    assert found.requests == []
    assert found.account.counts["spans"] == found.account.counts["spans_without_request_id"] > 0
    assert any("no span names a request id" in limit for limit in found.account.limits)


def test_text_times_without_nanoseconds_are_not_read() -> None:
    spans = spans_of(json.loads((OTEL / "inferenceperf_simple_chain.json").read_bytes()))
    assert spans is not None
    assert {(one.start_ns, one.end_ns) for one in spans} == {(None, None)}


def test_the_canonical_document_is_read_whole() -> None:
    spans = spans_of(json.loads((OTEL / "otelproto_trace.json").read_bytes()))
    assert spans is not None
    (span,) = spans
    assert (span.name, span.span_id, span.service) == ("I'm a server span", "eee19b7ec3c1b174", "my.service")
    assert span.attributes == {"my.span.attr": "some value"}
    assert span.pointer == "/resourceSpans/0/scopeSpans/0/spans/0"


def test_metrics_are_no_spans() -> None:
    path = OTEL / "otelproto_metrics.json"
    assert not recognises(path)
    found = drawn(open_spans, path)
    assert [(one.what, one.count) for one in found.losses] == [("documents_without_spans", 1)]
    assert not found.account.complete


def test_lines_of_documents_are_read_one_by_one_and_a_torn_one_is_told(tmp_path: Path) -> None:
    one = json.dumps(otlp({"gen_ai.request.id": {"stringValue": "a"}}))
    two = json.dumps(otlp({"gen_ai.request.id": {"stringValue": "b"}}))
    found = drawn(open_spans, written(tmp_path, f"{one}\n\n{two}\n{one[:50]}"))
    assert [request.request_ref.id for request in found.requests] == ["a", "b"]
    assert [(loss.what, loss.count) for loss in found.losses] == [("lines_invalid", 1)]
    assert not found.account.complete


def test_a_span_that_ends_before_it_starts_keeps_its_start_alone(tmp_path: Path) -> None:
    document = otlp({"gen_ai.request.id": {"stringValue": "a"}}, endTimeUnixNano=str(START - 1))
    (request,) = drawn(open_spans, written(tmp_path, json.dumps(document))).requests
    assert (request.start_ns, request.end_ns) == (START, None)
    assert request.metadata["times"] == "ends before it starts: the end is not read"


def test_values_of_every_kind_become_plain_and_a_torn_key_is_left_out() -> None:
    held = [
        {"key": "i", "value": {"intValue": "9223372036854775807"}},
        {"key": "n", "value": {"intValue": "-3"}},
        {"key": "b", "value": {"boolValue": True}},
        {"key": "d", "value": {"doubleValue": 0.5}},
        {"key": "a", "value": {"arrayValue": {"values": [{"stringValue": "x"}]}}},
        {"key": "k", "value": {"kvlistValue": {"values": [{"key": "y", "value": {"intValue": 1}}]}}},
        {"key": "twice", "value": {"intValue": 1}},
        {"key": "twice", "value": {"intValue": 2}},
        {"key": "odd", "value": {"intValue": "1e3"}},
        {"value": {"intValue": 1}},
        "nothing",
    ]
    assert attributes_of(held) == {
        "i": 2**63 - 1, "n": -3, "b": True, "d": 0.5, "a": ["x"], "k": {"y": 1}, "odd": None,
    }  # fmt: skip


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["resourceSpans", "scopeSpans", "spans", "name", "attributes", "key", "value", "resource"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_no_document_makes_reading_fail(document: object) -> None:
    for _ in spans_of(document) or ():
        pass
