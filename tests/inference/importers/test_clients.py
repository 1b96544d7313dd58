"""What clients recorded: bodies of streams, and results of benchmarks (IN-15; D-22)."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paritrace.errors import EvidenceError
from paritrace.inference.importers.client_aiperf import open_records
from paritrace.inference.importers.client_bench import open_result
from paritrace.inference.importers.client_inference_perf import open_stage
from paritrace.inference.importers.client_sse import open_body
from paritrace.inference.importers.openai_stream import Carries, StreamEnd, StreamReader, Usage
from paritrace.inference.importers.table import READERS
from paritrace.inference.importing import SourceKind
from tests.inference.importers.drawn import DATA, Drawn, drawn, written

SSE = DATA / "openai_sse"
BENCH = DATA / "vllm_bench" / "nvaction_serving_llama8B_2025-03.json"


def chunk(delta: dict[str, object], *, index: int = 0, finish: str | None = None, **more: object) -> str:
    choice = {"index": index, "delta": delta, "finish_reason": finish}
    return json.dumps({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice], **more})


def streamed(*events: str) -> StreamReader:
    reader = StreamReader()
    for event in events:
        reader.take(event)
    return reader


@pytest.mark.parametrize(
    ("name", "tokens", "chunks"),
    [
        ("openai_python_d61558011839.sse", (19, 177), 177),
        ("openai_python_4cc50a6135d2.sse", (79, 1), 1),
        ("openai_python_173417d55340.sse", (79, 11), 0),
    ],
)
def test_recorded_bodies_of_openai_are_complete_requests(name: str, tokens: tuple[int, int], chunks: int) -> None:
    found = drawn(open_body, SSE / name)
    (request,) = found.requests
    assert request.status == "successful"
    assert (request.input_tokens, request.output_tokens) == tokens
    assert request.metadata["events"].get("content", 0) == chunks
    assert (request.start_ns, request.end_ns) == (None, None)
    assert found.account.complete


def test_a_refusal_is_told_from_content() -> None:
    (request,) = drawn(open_body, SSE / "openai_python_173417d55340.sse").requests
    assert request.metadata["events"]["refusal"] == 10
    assert request.output_tokens == 11  # a chunk is not a token


@pytest.mark.parametrize("keep", [1.0, 0.5, 0.01])
def test_a_body_without_its_done_is_incomplete(tmp_path: Path, keep: float) -> None:
    text = (SSE / "openai_python_d61558011839.sse").read_text().replace("data: [DONE]\n\n", "")
    found = drawn(open_body, written(tmp_path, text[: int(len(text) * keep)]))
    (request,) = found.requests
    assert (request.status, request.metadata["why_incomplete"]) == ("incomplete", "no [DONE]")
    assert not found.account.complete
    assert request.output_tokens == (177 if keep == 1.0 else None)  # never the number of chunks


def test_a_done_that_no_blank_line_ends_was_not_received(tmp_path: Path) -> None:
    text = (SSE / "openai_python_4cc50a6135d2.sse").read_text()
    found = drawn(open_body, written(tmp_path, text[: text.index("[DONE]") + 3]))
    assert found.requests[0].status == "incomplete"


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
def test_every_way_to_end_a_line_comments_and_a_byte_order_mark_are_read(tmp_path: Path, end: str) -> None:
    text = (SSE / "openai_python_4cc50a6135d2.sse").read_text()
    body = "\ufeff: ping\n\n" + text
    found = drawn(open_body, written(tmp_path, body.replace("\n", end)))
    assert found.requests[0].status == "successful"
    assert found.requests[0].output_tokens == 1


def test_no_text_of_a_body_is_kept(tmp_path: Path) -> None:
    body = f"data: {chunk({'content': 'what nobody may read'})}\n\ndata: [DONE]\n\n"
    found = drawn(open_body, written(tmp_path, body))
    assert "nobody" not in repr(found.events) + repr(found.account)


def test_an_event_larger_than_the_bound_ends_reading_and_is_told(tmp_path: Path) -> None:
    body = f"data: {chunk({'content': 'a'})}\n\ndata: {'x' * (5 << 20)}\n\ndata: [DONE]\n\n"
    found = drawn(open_body, written(tmp_path, body))
    assert found.requests[0].status == "incomplete"
    assert [one.what for one in found.losses] == ["events"]
    assert not found.account.complete


def test_what_an_event_carries() -> None:
    reader = StreamReader()
    calls = [{"index": 0, "function": {"arguments": "{"}}]
    assert reader.take(chunk({"role": "assistant", "content": ""})) is Carries.NOTHING
    assert reader.take(chunk({"content": "a"})) is Carries.CONTENT
    assert reader.take(chunk({"tool_calls": calls})) is Carries.TOOL
    assert reader.take(chunk({"reasoning_content": "hm"})) is Carries.REASONING
    assert reader.take(chunk({"refusal": "no"})) is Carries.REFUSAL
    assert reader.take(chunk({}, finish="stop")) is Carries.FINISH
    assert reader.take('{"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2}}') is Carries.USAGE
    assert reader.take("nonsense") is Carries.INVALID
    assert reader.take("[1]") is Carries.INVALID
    assert reader.take(" [DONE] ") is Carries.DONE
    assert reader.facts().usage == Usage(input_tokens=1, output_tokens=2)
    assert reader.facts().why_incomplete == "an event that is no JSON object"


def test_a_legacy_completion_carries_text() -> None:
    assert StreamReader().take('{"choices": [{"index": 0, "text": "a", "finish_reason": null}]}') is Carries.CONTENT


def test_each_of_several_choices_has_to_end() -> None:
    whole = streamed(
        chunk({"content": "a"}), chunk({"content": "b"}, index=1), chunk({}, finish="stop"), "[DONE]"
    ).facts()
    assert (whole.end, whole.why_incomplete) == (StreamEnd.INCOMPLETE, "1 of 2 choices have no finish reason")


def test_an_error_inside_a_stream_is_an_error() -> None:
    facts = streamed(chunk({"content": "a"}), '{"error": {"type": "server_error", "message": "secret"}}').facts()
    assert (facts.end, facts.error_type) == (StreamEnd.ERROR, "server_error")
    assert "secret" not in repr(facts)


def test_usage_with_every_chunk_is_the_last_one() -> None:
    usages = [
        {"prompt_tokens": 5, "completion_tokens": n, "prompt_tokens_details": {"cached_tokens": 4}} for n in (1, 2)
    ]
    facts = streamed(*(chunk({"content": "a"}, usage=usage) for usage in usages)).facts()
    assert facts.usage == Usage(input_tokens=5, output_tokens=2, cached_input_tokens=4)


def test_events_of_the_responses_api_end_by_their_last_event() -> None:
    done = {
        "type": "response.completed",
        "response": {"id": "resp_1", "usage": {"input_tokens": 3, "output_tokens": 2}},
    }
    reader = StreamReader()
    assert reader.take('{"type": "response.output_text.delta", "delta": "a"}') is Carries.CONTENT
    assert reader.facts().end is StreamEnd.INCOMPLETE
    reader.take(json.dumps(done))
    facts = reader.facts()
    assert (facts.end, facts.response_id, facts.usage) == (StreamEnd.COMPLETE, "resp_1", Usage(3, 2))
    failed = streamed('{"type": "response.failed", "response": {"error": {"code": "server_error"}}}').facts()
    assert failed.end is StreamEnd.ERROR


@given(st.lists(st.text(max_size=30) | st.sampled_from(["[DONE]", "{}", '{"choices": [{}]}', '{"choices": {}}'])))
def test_no_data_makes_a_reader_fail(events: list[str]) -> None:
    facts = streamed(*events).facts()
    assert sum(facts.events.values()) == len(events)
    assert (facts.end is StreamEnd.COMPLETE) <= any(event.strip() == "[DONE]" for event in events)


def bench(tmp_path: Path, **fields: object) -> Drawn:
    return drawn(open_result, written(tmp_path, json.dumps({"mean_ttft_ms": 1.0} | fields)))


def test_a_result_of_early_2025_gives_quantiles_and_no_populations() -> None:
    found = drawn(open_result, BENCH)
    assert found.requests == []
    (summary,) = found.capabilities
    assert summary.collected == ("quantiles",)
    assert summary.metadata["quantiles"]["ttft_ms"]["p99"] == 165.47399744391114
    assert summary.metadata["populations"] == {"gap": "no_population"}
    assert summary.metadata["counts"] == {"offered": 200}  # how many were completed, that file does not say


def test_latencies_of_no_completed_request_are_unavailable_and_not_zero(tmp_path: Path) -> None:
    zeros = {
        f"{stat}_{metric}_ms": 0.0 for stat in ("mean", "median", "p99", "std") for metric in ("ttft", "tpot", "itl")
    }
    found = bench(tmp_path, completed=0, failed=100, num_prompts=100, request_throughput=0.0, **zeros)
    (summary,) = found.capabilities
    assert not summary.available
    assert summary.collected == ()
    figures = [one for group in summary.metadata["quantiles"].values() for one in group.values()]
    assert figures == [{"gap": "no_completed_requests"}] * 12
    assert any("latencies are unavailable" in limit for limit in found.account.limits)
    assert summary.metadata["counts"] == {"failed": 100, "offered": 100, "successful": 0}


def test_a_latency_of_exactly_zero_beside_requests_is_not_taken(tmp_path: Path) -> None:
    (summary,) = bench(tmp_path, completed=20, mean_ttft_ms=0.0, mean_tpot_ms=4.5, std_tpot_ms=0.0).capabilities
    assert summary.metadata["quantiles"]["ttft_ms"] == {"mean": {"gap": "zero_reported"}}
    assert summary.metadata["quantiles"]["tpot_ms"] == {"mean": 4.5, "std": 0.0}


def test_a_detailed_result_gives_requests_and_failed_ones_no_latency(tmp_path: Path) -> None:
    found = bench(
        tmp_path,
        completed=1,
        failed=1,
        input_lens=[5, 6],
        output_lens=[3, 0],
        ttfts=[0.1, 0.0],
        itls=[[0.01, 0.02], []],
        errors=["", "Traceback: secret"],
        start_times=[100.000000001, 100.5],
    )
    first, second = found.requests
    assert first.metadata["timings"] == {
        "time_to_first_output_ns": 100_000_000,
        "latency_ns": 130_000_000,  # as decimal numbers: 0.1 + 0.01 + 0.02
        "mean_between_chunks_ns": 15_000_000,
    }
    assert (first.status, first.start_ns, first.output_tokens) == ("successful", 100_000_000_001, 3)
    assert (second.status, second.output_tokens, second.metadata) == ("failed", None, {})
    assert "secret" not in repr(found.events)
    assert found.capabilities[0].collected == ("quantiles", "populations")


def test_a_request_without_error_and_without_output_is_no_success(tmp_path: Path) -> None:
    found = bench(tmp_path, completed=0, ttfts=[0.0], itls=[[]], errors=[""], output_lens=[0], input_lens=[1])
    assert [one.status for one in found.requests] == ["incomplete"]


def test_arrays_of_unlike_lengths_are_not_put_together(tmp_path: Path) -> None:
    found = bench(tmp_path, ttfts=[0.1, 0.2], itls=[[], []], errors=[""], output_lens=[1, 1], input_lens=[1, 1])
    assert found.requests == []
    assert not found.account.complete


@pytest.mark.parametrize("text", ["", "[1]", '{"mean_ttft_ms": 1', "\x00"])
def test_what_is_no_result_is_refused(tmp_path: Path, text: str) -> None:
    for opened in (open_result, open_stage):
        with pytest.raises(EvidenceError) as refused:
            drawn(opened, written(tmp_path, text))
        assert refused.value.code == "not_importable"


def test_records_of_aiperf_keep_ids_and_latencies_as_measured() -> None:
    found = drawn(open_records, DATA / "aiperf" / "profile_export_docs_example.jsonl")
    first, second = found.requests
    assert first.request_ref.id == first.metadata["x_request_id"] == "7609a2e7-aa53-4ab1-98f4-f35ecafefd25"
    assert first.metadata["timings"]["latency_ns"] == 297_525_228  # not end - start, which is of the wall clock
    assert first.metadata["timings"]["time_to_first_output_ns"] == 4_898_437
    assert (first.status, first.output_tokens, first.input_tokens) == ("successful", 9, 550)
    assert (second.status, second.output_tokens) == ("cancelled", None)
    assert "timings" not in second.metadata


@pytest.mark.parametrize(("issued", "limit"), [(3, "scheduled: when AIPerf"), (None, "is not recorded of all")])
def test_in27_the_schedule_of_aiperf_is_when_it_issued_the_credit(
    tmp_path: Path, issued: int | None, limit: str
) -> None:
    metadata = {"request_start_ns": 5, "request_end_ns": 9, "credit_issued_ns": issued}
    found = drawn(open_records, written(tmp_path, json.dumps({"metadata": metadata, "metrics": {}, "error": None})))
    (request,) = found.requests
    assert request.metadata.get("timings", {}).get("scheduled_ns") == issued
    assert any(limit in one for one in found.account.limits)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        ({"code": 429, "type": "TooManyRequests"}, "rejected"),
        ({"code": 503, "type": "Unavailable"}, "rejected"),
        ({"code": 500, "type": "InternalServerError"}, "failed"),
        ({"code": 504, "type": "GatewayTimeout"}, "timed_out"),
        ({"code": None, "type": "ReadTimeout"}, "timed_out"),
        (None, "successful"),
    ],
)
def test_outcomes_of_aiperf(tmp_path: Path, error: object, status: str) -> None:
    record = {"metadata": {"request_start_ns": 5, "request_end_ns": 3}, "metrics": {}, "error": error}
    found = drawn(open_records, written(tmp_path, json.dumps(record) + "\n{torn"))
    assert [(one.status, one.start_ns, one.end_ns) for one in found.requests] == [(status, 5, None)]
    assert [(one.what, one.count, one.reason.value) for one in found.losses] == [("lines", 1, "torn_tail")]
    assert not found.account.complete


def test_a_stage_of_inference_perf_gives_quantiles_and_the_delays_of_its_schedule() -> None:
    (summary,) = drawn(open_stage, DATA / "inference_perf" / "vllm_stage_0_lifecycle_metrics.json").capabilities
    assert summary.metadata["quantiles"]["time_to_first_token"]["p99"] == 0.039696927970508104
    assert summary.metadata["quantiles"]["schedule_delay"]["min"] == -0.0006079088198021054
    assert summary.metadata["counts"] == {"failed": 0, "sent": 60, "successful": 60}
    assert summary.collected == ("quantiles",)


def test_a_stage_whose_requests_all_failed_has_no_latency(tmp_path: Path) -> None:
    latency = {"request_latency": {"mean": 0.0, "p99": 0.0}}
    stage = {"load_summary": {"count": 5}, "successes": {"count": 0, "latency": latency}, "failures": {"count": 5}}
    (summary,) = drawn(open_stage, written(tmp_path, json.dumps(stage))).capabilities
    assert not summary.available
    assert summary.metadata["quantiles"]["request_latency"]["mean"] == {"gap": "no_completed_requests"}


@pytest.mark.parametrize("digits", [20, 400])
def test_numbers_beyond_64_bits_are_not_read_and_told(tmp_path: Path, digits: int) -> None:
    """EV-2: such a number would be refused by the artifact, and the whole file with it."""
    huge = int("9" * digits + "9")
    stage = {"load_summary": {"count": huge, "send_duration": huge}, "successes": {"count": 1}, "failures": {}}
    result = {"mean_ttft_ms": huge, "num_prompts": huge, "max_concurrency": huge, "completed": 1}
    for opened, document in ((open_stage, stage), (open_result, result)):
        found = drawn(opened, written(tmp_path, json.dumps(document)))
        assert not found.account.complete
        assert any("are not strict JSON and are not read" in one for one in found.account.limits)
        assert str(huge) not in str(found.events)


@pytest.mark.parametrize(
    "path", sorted(one for one in DATA.rglob("*") if one.suffix in (".json", ".jsonl", ".sse", ".txt")), ids=str
)
def test_each_real_file_is_recognised_by_one_reader_of_its_kind(path: Path) -> None:
    for kind in SourceKind:
        own = [one.name for one in READERS if one.kind is kind and one.recognises(path)]
        assert len(own) <= 1
    some = [one.name for one in READERS if one.recognises(path)]
    assert some or path.name == "otelproto_metrics.json"
