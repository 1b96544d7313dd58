"""The actions over real runs: their results, what may be given back, what is refused (AU-7 to AU-9, AU-16, AU-20)."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest
from jsonschema import Draft202012Validator

from paritrace.automation.protocol.schemas import result_schema
from paritrace.automation.protocol.table import load_action
from paritrace.evidence.digests import sha256_hex
from paritrace.files import LOCAL
from tests.attempts.importers.test_other_tools import report
from tests.attempts.written import FAIL, PASS, attempt, manifest
from tests.automation.protocol.asked import error_of, result_of
from tests.compare import check_records as records
from tests.reports.aligned_runs import THEIR_F, THEIR_G, G, artifact, pair, table, write_map
from tests.reports.written_runs import write_run


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A and B of two ranks, which differ in one operator and some calls; `kept` is their comparison."""
    artifact(tmp_path)
    return tmp_path


def compared(runs: Path, output: str = "out", **fields: object) -> Any:
    return result_of(
        runs, "compare", output=str(runs / output), baseline=str(runs / "A"), candidate=str(runs / "B"), **fields
    )


def names_in(place: Path) -> list[str]:
    return sorted(path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file())


def test_au7_two_runs_are_compared_and_every_rank_is_exported(runs: Path) -> None:
    found = compared(runs, ranks=[0, 1])
    assert (found["ranks"], found["ranks_missing"], found["verdict"]) == ([0, 1], [], "not_evaluated")
    assert {side: sorted(found["coverage"][side]) != [] for side in ("baseline", "candidate")} == {
        "baseline": True,
        "candidate": True,
    }
    assert [one["rank"] for one in found["first_differences"]] == [0, 1]
    assert found["num_ranks_differing"] == 2
    assert names_in(runs / "out") == [
        "comparison/calls.parquet",
        "comparison/comparison.json",
        "comparison/first_screen.txt",
        "comparison/manifest.json",
        "comparison/traces/rank-0.pftrace",
        "comparison/traces/rank-1.pftrace",
        "operation.json",
        "result.json",
    ]
    for one in found["comparison"]["files"]:
        assert sha256_hex((runs / "out" / "comparison" / one["path"]).read_bytes()) == one["sha256"]
    assert json.loads((runs / "out" / "result.json").read_bytes())["result"] == found


def test_au7_one_rank_alone_and_the_steps_asked_for(runs: Path) -> None:
    found = compared(runs, ranks=[1], steps={"first": 0, "end": 1}, formats=[])
    assert (found["ranks"], found["steps"]) == ([1], [0])
    assert [one["path"] for one in found["comparison"]["files"]] == ["comparison.json"]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"ranks": [0, 2]}, "no_such_rank"),
        ({"baseline": "nowhere"}, "not_found"),
        ({"candidate": "kept"}, "not_a_run"),
        ({"policy": "nowhere.toml"}, "not_found"),
        ({"steps": {"first": 3, "end": 3}}, "bad_steps"),
        ({"output": "kept"}, "output_not_fresh"),
    ],
)
def test_au4_what_cannot_be_compared_is_refused_and_nothing_is_written(
    runs: Path, monkeypatch: pytest.MonkeyPatch, fields: dict[str, object], code: str
) -> None:
    monkeypatch.chdir(runs)
    before = names_in(runs)
    asked = {"output": "out", "baseline": "A", "candidate": "B"} | fields
    error = error_of(Path(), "compare", **asked)
    assert (error["code"], error["kind"]) == (code, "refused")
    assert names_in(runs) == sorted([*before, "request.json"])


def test_au4_a_second_operation_into_one_output_is_refused_and_names_the_first(runs: Path) -> None:
    compared(runs)
    before = names_in(runs / "out")
    error = error_of(runs, "compare", output=str(runs / "out"), baseline=str(runs / "A"), candidate=str(runs / "B"))
    assert error["code"] == "output_not_fresh"
    assert "(compare of request " in error["message"]
    assert "ended, see result.json" in error["message"]
    assert names_in(runs / "out") == before


def test_au20_the_same_request_gives_the_same_result_but_for_what_is_listed(runs: Path) -> None:
    first, second = compared(runs, "one"), compared(runs, "two")
    assert first["digest"] != second["digest"]
    assert steady(first) == steady(second)
    kept = runs / "one" / "comparison"
    path = write_map(runs / "map.json", kept, pairs=[pair("reject", G, THEIR_G)])
    made = [
        result_of(runs, "align", artifact=str(kept), alignment_map=str(path), output=str(runs / name))
        for name in ("three", "four")
    ]
    assert steady(made[0]) == steady(made[1])
    for name, fields in (
        ("check", {"run": str(runs / "A")}),
        ("verify", {"run": str(runs / "A")}),
        ("explain", {"comparison": str(kept), "id": "counts.paired"}),
    ):
        assert result_of(runs, name, **fields) == result_of(runs, name, **fields)


def steady(found: Any) -> Any:
    """A result without what its action lists as varying."""
    found = json.loads(json.dumps(found))
    for name in ("digest", *load_action(found["action"]).varying):
        *way, last = name.split(".")
        part = found
        for key in way:
            part = part[key]
        del part[last]
    return found


def test_au8_a_result_is_aligned_and_the_source_stays_as_it_was(runs: Path) -> None:
    found = compared(runs)
    folder = runs / "out" / "comparison"
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    path = write_map(runs / "map.json", folder, pairs=[pair("reject", G, THEIR_G)])
    made = result_of(runs, "align", artifact=found, alignment_map=str(path), output=str(runs / "aligned"))
    assert (made["verdict"], made["source_sha256"]) == ("not_evaluated", found["comparison"]["sha256"])
    assert made["map_sha256"] == sha256_hex(path.read_bytes())
    assert made["sha256"] == sha256_hex((runs / "aligned" / "comparison" / "manifest.json").read_bytes())
    assert {path: path.read_bytes() for path in before} == before
    explained = result_of(runs, "explain", comparison=made, id="review")
    assert "rejected" in json.dumps(explained["explanation"])


def test_au8_a_map_with_problems_is_refused_with_all_of_them(runs: Path) -> None:
    (runs / "map.json").write_text("{}")
    error = error_of(
        runs, "align", artifact=str(runs / "kept"), alignment_map=str(runs / "map.json"), output=str(runs / "x")
    )
    assert (error["code"], error["kind"]) == ("bad_alignment_map", "refused")
    assert len(error["details"]) > 1
    assert not (runs / "x").exists()


def test_au9_a_finding_and_a_call_without_partner_are_explained(runs: Path) -> None:
    found = compared(runs)
    assert result_of(runs, "explain", comparison=found, id="counts.paired")["explanation"]["total"] > 0
    calls = pq.read_table(runs / "out" / "comparison" / "calls.parquet").to_pylist()
    session = next(one["session_id"] for one in calls if one["side"] == "candidate" and one["status"] == "unaligned")
    identity = f"candidate:{session}:{THEIR_F[0]}"
    answer = result_of(runs, "why-not", comparison=found, id=identity)["answer"]
    assert answer["reason"]
    assert answer == result_of(runs, "why-not", comparison=str(runs / "out" / "comparison"), id=identity)["answer"]
    assert error_of(runs, "explain", comparison=found, id="F999")["code"] == "no_such_id"


@pytest.mark.parametrize("change", ["num_findings", "digest", "ranks", "comparison"])
def test_au16_a_result_that_was_changed_is_refused(runs: Path, change: str) -> None:
    found = compared(runs)
    other: dict[str, object] = {
        "num_findings": 99,
        "digest": "0" * 64,
        "ranks": [0],
        "comparison": found["comparison"] | {"directory": str(runs / "kept")},
    }
    error = error_of(runs, "explain", comparison=found | {change: other[change]}, id="counts.paired")
    assert error["problems"] == [
        {"at": "/comparison", "message": "is not intact: its digest is not that of what it holds"}
    ]


def test_au16_a_result_without_its_digest_is_refused(runs: Path) -> None:
    found = compared(runs)
    del found["digest"]
    error = error_of(runs, "explain", comparison=found, id="counts.paired")
    assert {"at": "/comparison/digest", "message": "is missing"} in error["problems"]


def test_au16_a_result_of_another_action_is_refused(runs: Path) -> None:
    write_run(runs / "C", records.training(), steps="0:3")
    checked = result_of(runs, "check", run=str(runs / "C"))
    error = error_of(runs, "explain", comparison=checked, id="counts.paired")
    assert [problem["at"] for problem in error["problems"]] == ["/comparison"]


def test_au16_a_result_that_a_program_wrote_its_own_way_is_still_intact(runs: Path) -> None:
    found = compared(runs)
    again = json.loads(json.dumps(found, sort_keys=True, indent=7), parse_float=_as_javascript)
    assert result_of(runs, "explain", comparison=again, id="counts.paired")


def _as_javascript(text: str) -> float | int:
    """A number as a program reads and writes it that knows one kind of them."""
    return int(float(text)) if float(text).is_integer() else float(text)


def test_au16_a_comparison_that_is_another_one_by_now_is_refused(runs: Path) -> None:
    found = compared(runs)
    path = runs / "out" / "comparison" / "manifest.json"
    path.write_bytes(path.read_bytes() + b" ")
    error = error_of(runs, "explain", comparison=found, id="counts.paired")
    assert (error["code"], error["kind"]) == ("comparison_changed", "refused")


def test_au9_a_run_is_checked_and_verified(tmp_path: Path) -> None:
    table(calls_of_f=2).write(tmp_path / "A")
    run = tmp_path / "A"
    checked = result_of(tmp_path, "check", run=str(run))["checked"]
    assert {one["status"] for one in checked["invariants"]} >= {"pass"}
    verified = result_of(tmp_path, "verify", run=str(run))
    assert (verified["kind"], verified["verdict"], verified["store"]) == ("run", "intact", None)
    journal = next(run.rglob("calls.jsonl"))
    journal.write_bytes(journal.read_bytes()[:-40])
    assert result_of(tmp_path, "verify", run=str(run))["verdict"] != "intact"  # found, and no error


def test_au9_attempts_are_summarised_and_compared(tmp_path: Path) -> None:
    listed = [
        attempt(f"{who}-t{n}-1", PASS if n < wins else FAIL)
        for who, wins in (("alpha", 3), ("beta", 1))
        for n in range(4)
    ]
    path = tmp_path / "m.json"
    path.write_bytes(msgspec.json.encode(manifest(listed)))
    summary = result_of(tmp_path, "attempts-summarize", manifest=str(path))["summary"]
    assert [one["id"] for one in summary["configurations"]] == ["alpha", "beta"]
    found = result_of(tmp_path, "attempts-compare", manifest=str(path), baseline="alpha", candidate="beta")
    assert found["comparison"]["summary"] == summary
    error = error_of(tmp_path, "attempts-compare", manifest=str(path), baseline="gamma")
    assert (error["code"], error["kind"]) == ("no_such_configuration", "refused")
    path.write_text("{}")
    assert error_of(tmp_path, "attempts-summarize", manifest=str(path))["code"] == "bad_attempts_manifest"


def test_au9_a_figure_of_attempts_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_bytes(msgspec.json.encode(manifest([attempt("alpha-t1-1", PASS)])))
    found = result_of(tmp_path, "attempts-explain", manifest=str(path), figure="alpha.tokens.input_tokens")
    assert found["explanation"]["manifest_sha256"] == sha256_hex(path.read_bytes())
    assert [one["attempt_id"] for one in found["explanation"]["evidence"]] == ["alpha-t1-1"]
    error = error_of(tmp_path, "attempts-explain", manifest=str(path), figure="alpha.nothing")
    assert (error["code"], error["kind"]) == ("no_such_figure", "refused")


def test_au9_attempts_are_imported_and_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "m.run.json"
    path.write_text(json.dumps(report()))
    asked = {"output": str(tmp_path / "out"), "tool": "swebench", "paths": [str(path)], "configurations": ["alpha"]}
    dry = result_of(tmp_path, "attempts-import", **asked, dry_run=True)
    assert (dry["dry_run"], dry["manifest"], dry["configurations"]) == (True, None, ["alpha"])
    assert not (tmp_path / "out").exists()
    made = result_of(tmp_path, "attempts-import", **asked)
    assert made["manifest_sha256"] == dry["manifest_sha256"] == sha256_hex(Path(made["manifest"]).read_bytes())
    assert (made["num_attempts"], made["num_refused"]) == (dry["num_attempts"], 0)
    assert result_of(tmp_path, "attempts-summarize", manifest=made["manifest"])["summary"]["configurations"]
    assert error_of(tmp_path, "attempts-import", **asked, dry_run=True)["code"] == "output_not_fresh"
    other = asked | {"output": str(tmp_path / "other"), "configurations": ["a", "b"]}
    assert error_of(tmp_path, "attempts-import", **other)["code"] == "configuration_names"


def test_au1_results_are_of_their_published_schemas(runs: Path) -> None:
    found = compared(runs)
    results = [
        found,
        result_of(runs, "check", run=str(runs / "A")),
        result_of(runs, "verify", run=str(runs / "A")),
        result_of(runs, "explain", comparison=found, id="counts.paired"),
    ]
    for result in results:
        Draft202012Validator(result_schema(load_action(result["action"]))).validate(result)


def test_a_kept_comparison_is_one_for_the_command_line_too(runs: Path) -> None:
    from paritrace.reports.kept_result import open_result

    compared(runs)
    assert open_result(runs / "out" / "comparison", files=LOCAL).comparison.ranks_compared == (0, 1)


def test_au9_a_store_is_verified_and_compared_from(runs: Path) -> None:
    from paritrace.cli.entry import status_of

    for name in ("A", "B"):
        where = ["--staging", str(runs / "staging"), "--store", str(runs / f"store-{name}"), "--node-id", "n"]
        for rank in (0, 1):
            staged = runs / "staging" / name / f"rank-{rank}"
            table(calls_of_f=2 if name == "A" else 3).write(staged, rank=rank, world_size=2, run_id=name)
            assert status_of(["store", "sync", *where, "--run-id", name, "--rank", str(rank), "--final"]) == 0
    verified = result_of(runs, "verify", run=str(runs / "store-A"))
    assert (verified["kind"], verified["verdict"], verified["run"]) == ("store", "intact", None)
    asked = {"baseline": str(runs / "store-A"), "candidate": str(runs / "store-B"), "output": str(runs / "of-stores")}
    assert result_of(runs, "compare", **asked)["ranks"] == [0, 1]
