"""What is missing, truncated, contradicting or foreign, by the names of AT-20 (AT-1 to AT-5, AT-21, D-05)."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from paritrace import attempts
from paritrace.attempts.gaps import AttemptGap
from paritrace.attempts.manifest import Attempt, Configuration, Execution, Request, RequestState
from paritrace.attempts.origins import Origin, Source
from paritrace.attempts.reading import Seen, Unusable, record_of, result_of
from paritrace.attempts.result import OfConfiguration, Summary, Warned
from paritrace.errors import RequestError
from paritrace.evidence.coverage import CoverageState
from tests.attempts.written import FAIL, WHOLE, attempt, loaded, manifest, only, record, result, source, summary, usage

AT = Origin("r")


def by_requests(folder: Path, *requests: Request, sources: tuple[Source, ...] = (), complete: bool = True) -> Summary:
    one = attempt("a-t1-1", accounting=None, requests=requests, requests_complete=complete)
    return attempts.summarize(loaded(manifest([one], sources=sources), folder=folder), details=True)


def one_request(found: Summary) -> tuple[str, OfConfiguration]:
    assert found.details is not None
    return found.details[0].requests[0].state, only(found)


def test_at_20_an_attempt_missing() -> None:
    found = only(summary([attempt("a-t1-1"), attempt("a-t2-1", None, present=False, accounting=None)]))
    assert (found.attempts.observed, found.attempts.expected, found.attempts_state) == (1, 2, CoverageState.INCOMPLETE)
    assert found.evaluators[0].states == {"evaluated_pass": 1, "missing": 1}
    tokens = found.tokens["input_tokens"]
    assert (tokens.observed_sum, tokens.high, tokens.coverage.observed) == (100, None, 1)
    assert tokens.coverage.gaps == {"result_missing": 1}


def test_at_20_a_result_missing(tmp_path: Path) -> None:
    state, found = one_request(
        by_requests(tmp_path, Request("r1", result="gone"), sources=(Source("gone", "gone.json", "0" * 64),))
    )
    assert state == "missing"
    assert found.gaps == {"result_missing": 1}
    assert found.tokens["input_tokens"].state is CoverageState.INCOMPLETE


def test_at_20_a_start_only_record(tmp_path: Path) -> None:
    held = source(tmp_path, "r.jsonl", record("r1", ended=False))
    state, found = one_request(by_requests(tmp_path, Request("r1", record="r.jsonl"), sources=(held,)))
    assert (state, found.gaps) == ("started_only", {"record_truncated": 1})


def test_at_3_a_record_stands_in_for_a_missing_result(tmp_path: Path) -> None:
    counters = result("r1")["usage"]
    held = source(tmp_path, "r.jsonl", record("r1", usage=counters))
    absent = Source("gone", "gone.json", None)
    state, found = one_request(
        by_requests(tmp_path, Request("r1", result="gone", record="r.jsonl"), sources=(held, absent))
    )
    assert state == "record_only"
    assert found.tokens["input_tokens"].observed_sum == 100
    assert found.gaps == {"result_missing": 1}
    assert found.tokens["input_tokens"].state is CoverageState.INCOMPLETE


def test_at_20_a_record_that_disagrees_with_its_result(tmp_path: Path) -> None:
    held = (
        source(tmp_path, "result.json", result("r1")),
        source(tmp_path, "r.jsonl", record("r1", usage={"input_tokens": 1, "input_tokens_include_cache": True})),
    )
    state, found = one_request(
        by_requests(tmp_path, Request("r1", result="result.json", record="r.jsonl"), sources=held)
    )
    assert state == "result"
    assert found.tokens["input_tokens"].observed_sum == 100
    assert found.gaps == {"record_result_conflict": 1}


def test_at_3_a_record_that_agrees_is_no_conflict(tmp_path: Path) -> None:
    held = (
        source(tmp_path, "result.json", result("r1")),
        source(tmp_path, "r.jsonl", record("r1", usage=result("r1")["usage"])),
    )
    _, found = one_request(by_requests(tmp_path, Request("r1", result="result.json", record="r.jsonl"), sources=held))
    assert found.gaps == {}


def test_at_20_an_incomplete_request_list(tmp_path: Path) -> None:
    held = source(tmp_path, "result.json", result("r1"))
    found = only(by_requests(tmp_path, Request("r1", result="result.json"), sources=(held,), complete=False))
    assert found.requests_state is CoverageState.UNVERIFIED
    tokens = found.tokens["input_tokens"]
    assert (tokens.observed_sum, tokens.state) == (100, CoverageState.UNVERIFIED)
    assert tokens.coverage.gaps == {"request_list_unverified": 1}


def test_at_9_an_attempt_list_that_nobody_declared_is_no_total() -> None:
    found = only(summary([attempt("a-t1-1")], configurations=(Configuration("a"),)))
    assert found.attempts_state is CoverageState.UNVERIFIED
    assert found.tokens["input_tokens"].state is CoverageState.UNVERIFIED
    assert found.tokens["input_tokens"].high is None


def test_at_2_an_id_inside_a_file_that_differs(tmp_path: Path) -> None:
    held = source(tmp_path, "result.json", result("another"))
    _, found = one_request(by_requests(tmp_path, Request("r1", result="result.json"), sources=(held,)))
    assert found.gaps == {"identity_mismatch": 1}
    assert found.tokens["input_tokens"].coverage.observed == 0


def test_at_1_other_bytes_than_those_named_are_not_used(tmp_path: Path) -> None:
    held = source(tmp_path, "result.json", result("r1"))
    (tmp_path / "result.json").write_bytes(b'{"request_id": "r1", "status": "succeeded"}')
    state, found = one_request(by_requests(tmp_path, Request("r1", result="result.json"), sources=(held,)))
    assert (state, found.gaps) == ("unreadable", {"result_invalid": 1})


def test_at_1_a_changed_source_of_an_imported_attempt_is_a_gap(tmp_path: Path) -> None:
    held = source(tmp_path, "log.json", b"{}")
    one = attempt("a-t1-1", origin=Origin("log.json"))
    read = loaded(manifest([one], sources=(held,)), folder=tmp_path)
    assert only(attempts.summarize(read)).gaps == {}
    (tmp_path / "log.json").write_bytes(b"[]")
    found = only(attempts.summarize(read))
    assert found.gaps == {"result_invalid": 1}
    assert found.tokens["input_tokens"].state is CoverageState.INCOMPLETE
    (tmp_path / "log.json").unlink()
    assert only(attempts.summarize(read)).gaps == {"result_missing": 1}


@pytest.mark.parametrize("path", ["../outside.json", "/etc/hostname", "link.json"])
def test_at_1_paths_are_confined(tmp_path: Path, path: str) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "outside.json").write_bytes(b"{}")
    (inside / "link.json").symlink_to(tmp_path / "outside.json")
    of = manifest([attempt("a-t1-1")], sources=(Source("s", path, "0" * 64),))
    with pytest.raises(RequestError) as refused:
        attempts.summarize(loaded(of, folder=inside))
    assert refused.value.code == "path_outside"
    if path != "/etc/hostname":
        attempts.summarize(loaded(replace(of, roots=("..",)), folder=inside))


def test_d_05_one_id_success_and_error_is_a_conflict_and_neither_is_chosen() -> None:
    good = attempt("a-t1-1", content_sha256="1" * 64)
    bad = attempt("a-t1-1", None, content_sha256="2" * 64, execution=Execution.FAILED)
    for order in ([good, bad], [bad, good]):
        found = summary(order)
        assert only(found).evaluators[0].states == {"not_evaluated": 1}
        assert only(found).gaps == {"identity_conflict": 1}
        assert only(found).tokens["input_tokens"].coverage.observed == 0
        (warning,) = [one for one in found.warnings if one.code is Warned.CONFLICTING_RECORDS]
        assert warning.about == ("a-t1-1",)


def test_at_2_a_conflict_across_configurations_loses_no_planned_attempt() -> None:
    mine, theirs = attempt("a-t1-1"), attempt("a-t1-1", FAIL, configuration_id="b")
    found = summary([mine, theirs, attempt("b-t2-1")])
    assert [one.attempts.observed for one in found.configurations] == [1, 2]
    assert [one.gaps for one in found.configurations] == [{"identity_conflict": 1}] * 2
    assert [one.evaluators[0].states.get("evaluated_fail") for one in found.configurations] == [None, None]


def test_at_21_a_request_that_nobody_listed_keeps_the_total_open() -> None:
    listed = (Request("r1", accounting=WHOLE), Request("r2", state=RequestState.UNEXPECTED, accounting=WHOLE))
    found = only(summary([attempt("a-t1-1", accounting=None, requests=listed)]))
    assert found.requests == {"result": 1, "unexpected": 1}
    tokens = found.tokens["input_tokens"]
    assert (tokens.observed_sum, tokens.high) == (200, None)
    assert tokens.coverage.gaps == {"request_list_unverified": 1}


def test_at_2_the_same_content_twice_is_counted_once_and_said() -> None:
    found = summary([attempt("a-t1-1"), attempt("a-t1-1", origin=None), attempt("a-t2-1")])
    assert only(found).attempts.observed == 2
    assert only(found).tokens["input_tokens"].observed_sum == 200
    assert [one.about for one in found.warnings if one.code is Warned.REPEATED_RECORDS] == [("a-t1-1",)]


def test_rr_5_a_record_is_read_around_a_line_that_is_none() -> None:
    data = record("r1", usage={"input_tokens": 5, "input_tokens_include_cache": True})
    start, end, _ = data.split(b"\n")
    seen = record_of(start + b'\n{"x": NaN}\n' + end + b"\n", origin=AT)
    assert isinstance(seen, Seen)
    assert seen.accounting is not None
    assert seen.accounting.origin == Origin("r", 3, "/usage")
    torn = record_of(start + b'\n{"line": "end", "requ', origin=AT)
    assert isinstance(torn, Seen)
    assert (torn.ended, torn.torn) == (False, True)
    assert isinstance(record_of(b"nothing", origin=AT), Unusable)


@pytest.mark.parametrize("field", ["input_tokens", "output_tokens", "cached_input_tokens", "cost_usd"])
@pytest.mark.parametrize("junk", ["-1", "1" + "0" * 40, "1e999"])
def test_at_5_a_figure_that_can_be_none_makes_a_result_and_a_record_invalid(field: str, junk: str) -> None:
    if field == "cost_usd" and junk.isdecimal():
        junk = "1e101"
    said = b'{"request_id": "r1", "status": "succeeded", "usage": {"%s": %s}}' % (field.encode(), junk.encode())
    assert isinstance(result_of(said, origin=AT), Unusable)
    end = b'{"line": "end", ' + said[1:]
    seen = record_of(b'{"line": "start", "request_id": "r1"}\n' + end + b"\n", origin=AT)
    assert isinstance(seen, Unusable) or not seen.ended


def test_at_5_an_error_that_left_no_accounting() -> None:
    data = record("r1", status=None, error={"code": "host_timeout"})
    seen = record_of(data, origin=AT)
    assert isinstance(seen, Seen)
    assert (seen.raised, seen.execution, seen.accounting) == (True, Execution.FAILED, None)


def test_at_6_detailed_counters_and_top_ones_are_never_mixed() -> None:
    detailed = {"nemo_fabric.detailed_token_usage.v1": {"input_tokens": 7, "reasoning_tokens": None}}
    seen = result_of(
        b'{"request_id": "r1", "status": "succeeded", "usage": {"input_tokens": 9, "output_tokens": 3, "metadata": %s}}'
        % __import__("json").dumps(detailed).encode(),
        origin=AT,
    )
    assert isinstance(seen, Seen)
    assert seen.accounting is not None
    (counters,) = seen.accounting.usage
    assert (counters.input_tokens, counters.output_tokens) == (7, None)


@pytest.mark.parametrize("data", [b"", b"[]", b'{"status": 1}', b'{"request_id": "r", "status": "s", "usage": 3}'])
def test_at_5_a_file_that_is_no_result(data: bytes) -> None:
    found = result_of(data, origin=AT)
    assert isinstance(found, Unusable)
    assert found.reason is AttemptGap.RESULT_INVALID


def test_at_15_an_attempts_own_account_is_held_against_its_requests_and_not_added() -> None:
    parts = (Request("r1", accounting=WHOLE), Request("r2", accounting=WHOLE))
    whole = replace(WHOLE, usage=(usage(input_tokens=300, output_tokens=20),))
    one: Attempt = attempt("a-t1-1", accounting=whole, requests=parts)
    found = summary([one])
    assert only(found).tokens["input_tokens"].observed_sum == 300
    assert found.details is not None
    assert found.details[0].unattributed == {"input_tokens": 100}


def test_p_7_no_text_of_the_workload_is_in_a_summary(tmp_path: Path) -> None:
    secret = "SECRET-TOKEN"
    held = source(
        tmp_path, "result.json", result("r1", output={"response": secret}, error={"message": secret}, status="failed")
    )
    broken = source(tmp_path, "broken.json", b'{"request_id": "r2", "status": "' + secret.encode())
    found = by_requests(
        tmp_path,
        Request("r1", result="result.json"),
        Request("r2", result="broken.json"),
        sources=(held, broken),
    )
    import msgspec

    assert secret.encode() not in msgspec.json.encode(found)
