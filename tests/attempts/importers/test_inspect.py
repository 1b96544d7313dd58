"""Inspect logs become attempts: the inventory, the verdicts, the usage, and what was refused (AT-16, D-05, D-07)."""

import json
import zipfile
from pathlib import Path

import pytest

from paritrace.attempts.gaps import AttemptGap
from paritrace.attempts.manifest import Relation, StopKind, VerdictKind
from tests.attempts.importers.evidence import (
    DATA,
    INSPECT_A,
    INSPECT_B,
    inspect_log,
    inspect_sample,
    manifest_of,
    refused_of,
    verdicts,
    written,
)


def test_at_16_an_eval_and_a_json_log_are_eighteen_planned_attempts_each() -> None:
    manifest = manifest_of("inspect", INSPECT_A, INSPECT_B)
    assert [configuration.id for configuration in manifest.configurations] == ["inspect-a-errors", "inspect-b-errors"]
    assert all(configuration.attempts_complete for configuration in manifest.configurations)
    a = [one for one in manifest.attempts if one.configuration_id == "inspect-a-errors"]
    b = [one for one in manifest.attempts if one.configuration_id == "inspect-b-errors"]
    assert (len(a), len(b)) == (18, 18)
    assert sum(bool(one.evaluations) for one in a) == 14
    assert sum(bool(one.evaluations) for one in b) == 15
    assert {one.task_id for one in a} == {one.task_id for one in b}


def test_at_16_every_figure_leads_to_a_member_of_the_archive() -> None:
    manifest = manifest_of("inspect", INSPECT_A)
    (source,) = manifest.sources
    assert source.sha256 == "5b9b75294e3d5735c9f60639cf12ae8bebb0c8dcb2b54a52f0c887d2a47b5850"
    attempt = next(one for one in manifest.attempts if one.evaluations)
    origin = attempt.evaluations[0].origin
    assert origin is not None
    assert (origin.source, origin.member, origin.pointer) == (source.id, "samples/t01_epoch_1.json", "/scores/match")


def test_at_4_an_error_is_no_verdict_and_its_message_is_not_kept() -> None:
    manifest = manifest_of("inspect", INSPECT_A)
    broken = [one for one in manifest.attempts if one.stop.kind is StopKind.ERROR]
    assert {one.stop.word for one in broken} == {"ConnectionError", "RuntimeError"}
    assert [one.evaluations for one in broken] == [()] * 4


def test_at_4_a_limit_is_how_it_stopped_and_the_verdict_stands_beside_it() -> None:
    manifest = manifest_of("inspect", INSPECT_B)
    limited = [one for one in manifest.attempts if one.stop.kind is StopKind.LIMIT]
    assert [one.stop.word for one in limited] == ["message limit"] * 2
    assert [one.evaluations[0].verdict for one in limited] == [VerdictKind.FAIL] * 2


def test_at_6_the_total_proves_that_the_cache_was_counted_beside_the_input() -> None:
    manifest = manifest_of("inspect", INSPECT_B)
    first = next(one for one in manifest.attempts if one.task_id == "arithmetic/t01" and one.accounting is not None)
    assert first.accounting is not None
    (usage,) = first.accounting.usage
    assert (usage.input_tokens, usage.cached_input_tokens, usage.input_includes_cache) == (63, 32, False)
    (request,) = first.requests
    assert request.accounting is not None
    assert request.accounting.usage[0].input_tokens == 63


def test_at_16_a_bare_nan_is_refused_with_its_line_and_the_rest_is_read(tmp_path: Path) -> None:
    log = tmp_path / "nan.json"
    log.write_bytes((DATA / "inspect" / "05_inspect_log_with_nan.txt").read_bytes())
    assert refused_of("inspect", log, base=tmp_path) == ["nan.json, line 41: NaN is not JSON: the value is not read"]
    manifest = manifest_of("inspect", log, base=tmp_path)
    (total,) = manifest.configurations[0].totals
    assert total.accounting.usage[0].input_tokens == 8868
    assert [gap.origin.line for gap in manifest.gaps if gap.origin is not None] == [41]
    assert not manifest.configurations[0].attempts_complete


def test_d_05_two_logs_of_one_run_are_two_contents_of_one_attempt(tmp_path: Path) -> None:
    for name in ("06_inspect_evalset_success.json", "07_inspect_evalset_error_same_ids.json"):
        (tmp_path / name).write_bytes((DATA / "inspect" / name).read_bytes())
    attempts = manifest_of("inspect", tmp_path, base=tmp_path).attempts
    assert len({one.attempt_id for one in attempts}) == 1
    assert len({one.content_sha256 for one in attempts}) == 2


def test_d_07_errors_and_scores_that_are_no_number_stay_apart_from_failures(tmp_path: Path) -> None:
    samples = [
        inspect_sample("s1"),
        inspect_sample("s2", scores={"match": {"value": "I"}}),
        inspect_sample("s3", scores={"match": {"value": None}}),
        inspect_sample("s4", scores={}, error={"message": "TimeoutError('x')"}),
    ]
    log = written(tmp_path / "log.json", inspect_log(samples, dataset={"sample_ids": ["s1", "s2", "s3", "s4", "s5"]}))
    manifest = manifest_of("inspect", log, base=tmp_path)
    assert verdicts(manifest) == {"pass": 1, "fail": 1, "error": 1, "execution failed": 1, "missing": 1}


def test_at_16_partial_scores_are_scores_for_the_whole_log(tmp_path: Path) -> None:
    samples = [inspect_sample("s1"), inspect_sample("s2", scores={"match": {"value": "P"}})]
    log = written(tmp_path / "log.json", inspect_log(samples))
    evaluations = [one.evaluations[0] for one in manifest_of("inspect", log, base=tmp_path).attempts]
    assert [(one.verdict, one.score) for one in evaluations] == [(VerdictKind.SCORE, 1.0), (VerdictKind.SCORE, 0.5)]


def test_at_16_tries_whose_errors_alone_were_kept_are_destroyed_evidence(tmp_path: Path) -> None:
    samples = [inspect_sample("s1", error_retries=[{"message": "A()"}, {"message": "B()"}]), inspect_sample("s2")]
    log = written(tmp_path / "log.json", inspect_log(samples))
    gaps = manifest_of("inspect", log, base=tmp_path).attempts[0].gaps
    assert [(gap.reason, gap.count) for gap in gaps] == [(AttemptGap.RETRY_DESTROYED, 2)]


def test_at_2_a_retried_run_copies_what_had_finished_and_tries_again_what_had_failed(tmp_path: Path) -> None:
    done, broken = inspect_sample("s1"), inspect_sample("s2", scores={}, error={"message": "OSError()"})
    again = inspect_sample("s2", uuid="u2", scores={"match": {"value": "I"}})
    written(tmp_path / "1.json", inspect_log([done, broken]))
    later = {"run_id": "R2", "created": "2026-01-02T00:00:00+00:00"}
    written(tmp_path / "2.json", inspect_log([done, again], **later))
    attempts = manifest_of("inspect", tmp_path, base=tmp_path).attempts
    assert [one.attempt_id for one in attempts] == [
        "sums/s1/1@R1.T1",
        "sums/s1/1@R1.T1",
        "sums/s2/1@R1.T1",
        "sums/s2/1@R2.T1",
    ]
    assert attempts[0] == attempts[1]
    assert (attempts[3].relation, attempts[3].retry_of) == (Relation.RETRY_ON_ERROR, "sums/s2/1@R1.T1")


def test_at_2_what_a_killed_log_misses_another_log_of_the_task_holds(tmp_path: Path) -> None:
    written(tmp_path / "1.json", inspect_log([inspect_sample("s1")]) | {"status": "started"})
    both = inspect_log([inspect_sample("s1"), inspect_sample("s2")], run_id="R2", created="2026-01-02T00:00:00+00:00")
    written(tmp_path / "2.json", both)
    assert verdicts(manifest_of("inspect", tmp_path, base=tmp_path)) == {"pass": 3}  # s1 seen twice


@pytest.mark.parametrize("bad", [b"PK\x03\x04 torn", b"", b"not a zip at all"])
def test_at_16_a_torn_archive_is_refused_and_the_other_log_is_read(bad: bytes, tmp_path: Path) -> None:
    (tmp_path / "torn.eval").write_bytes(bad)
    (tmp_path / "whole.eval").write_bytes(INSPECT_A.read_bytes())
    assert len(manifest_of("inspect", tmp_path, base=tmp_path).attempts) == 18
    (refusal,) = refused_of("inspect", tmp_path, base=tmp_path)
    assert refusal.startswith("torn.eval: not a zip archive, or torn")


def test_at_16_a_truncated_eval_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "cut.eval").write_bytes(INSPECT_A.read_bytes()[:50_000])
    (tmp_path / "whole.eval").write_bytes(INSPECT_A.read_bytes())
    assert refused_of("inspect", tmp_path, base=tmp_path) == [
        "cut.eval: not a zip archive, or torn before its directory at the end"
    ]


def test_at_16_a_killed_run_is_read_from_what_it_had_begun(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "killed.eval", "w") as archive:
        archive.writestr("_journal/start.json", json.dumps({"version": 2, "eval": inspect_log([])["eval"]}))
        archive.writestr("samples/s1_epoch_1.json", json.dumps(inspect_sample("s1")))
    manifest = manifest_of("inspect", tmp_path, base=tmp_path)
    assert verdicts(manifest) == {"pass": 1, "missing": 1}
    assert next(one for one in manifest.attempts if not one.present).stop.kind is StopKind.KILLED


def test_at_16_a_member_that_is_damaged_costs_that_member(tmp_path: Path) -> None:
    data = bytearray(INSPECT_A.read_bytes())
    at = data.index(b"samples/t02_epoch_1.json") + len(b"samples/t02_epoch_1.json") + 40
    data[at : at + 8] = b"\xff" * 8
    (tmp_path / "log.eval").write_bytes(bytes(data))
    manifest = manifest_of("inspect", tmp_path, base=tmp_path)
    assert sum(one.present for one in manifest.attempts) == 17
    assert [one.task_id for one in manifest.attempts if not one.present] == ["arithmetic/t02"]
    (refusal,) = refused_of("inspect", tmp_path, base=tmp_path)
    assert refusal.startswith("log.eval (samples/t02_epoch_1.json): cannot be unpacked")


def test_at_16_a_sample_of_another_form_is_refused_with_its_place(tmp_path: Path) -> None:
    log = written(tmp_path / "log.json", inspect_log([inspect_sample("s1"), {"id": "s2", "epoch": "x"}]))
    assert refused_of("inspect", log, base=tmp_path) == [
        "log.json: not as its format says: Expected `int`, got `str` - at `$.epoch`"
    ]


def test_at_16_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    outside = written(tmp_path / "outside" / "log.json", inspect_log([inspect_sample("s1")]))
    logs = tmp_path / "logs"
    written(logs / "own.json", inspect_log([inspect_sample("s1"), inspect_sample("s2")]))
    (logs / "link.json").symlink_to(outside)
    assert len(manifest_of("inspect", logs, base=tmp_path).attempts) == 2
    assert refused_of("inspect", logs, base=tmp_path) == [
        "logs/link.json: a symbolic link that leads outside the folder"
    ]
