"""The MCP tools as functions, without the protocol: answers, pages, bounds, and what is refused (AU-12, AU-13)."""

import json
import os
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from jsonschema import Draft202012Validator

from paritrace.mcp.places import Places
from paritrace.mcp.questions import PAGE_ROWS
from paritrace.mcp.telling import ANSWER_CHARACTERS, TEXT_CHARACTERS, size_of
from paritrace.mcp.tools import TOOLS, schema_of
from paritrace.reports.shelf import key_of
from paritrace.runs.pack import pack
from tests.mcp.asking import STEPS, ask, keys, pages, places_of, refusal, texts
from tests.web.shelves import ODD, keep_comparison, write_pair, write_run


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kept comparison of two runs A and B with odd names, in a folder of their own: `kept.parents[3]`."""
    return write_pair(tmp_path_factory.mktemp("pair"), names=("scale", ODD, "fold"), steps=STEPS)


@pytest.fixture(scope="module")
def places(kept: Path) -> Places:
    return places_of(kept.parents[3])


@pytest.fixture
def copy(kept: Path, tmp_path: Path) -> Path:
    """A copy of the comparison with its runs, to be damaged."""
    shutil.copytree(kept.parents[3], tmp_path / "all")
    return tmp_path / "all" / kept.relative_to(kept.parents[3])


def test_au12_everything_is_listed_with_counts_and_keys(kept: Path, places: Places) -> None:
    found = ask(places, "list_evidence")
    assert next(iter(found)) == "counts"
    assert found["counts"] == {"run": 2, "comparison": 1, "check": 0, "store": 0, "unreadable": 0}
    rows = {row["path"]: row for row in found["rows"]["items"]}
    assert set(rows) == {str(kept.parents[3] / "A"), str(kept.parents[2]), str(kept)}
    assert rows[str(kept)]["key"] == key_of(kept)
    assert rows[str(kept)]["about"].startswith("The runs part at step 0")
    assert keys(places, "comparison") == [key_of(kept)]


def test_au12_a_long_list_comes_in_pages(tmp_path: Path) -> None:
    for number in range(60):
        (tmp_path / f"broken-{number:02}").mkdir()
        (tmp_path / f"broken-{number:02}" / "run.json").write_text("{")
    places = places_of(tmp_path)
    found = list(pages(places, "list_evidence", kind="unreadable"))
    assert [len(page["rows"]["items"]) <= PAGE_ROWS for page in found] == [True] * len(found)
    assert len(found) > 1
    assert {page["rows"]["total"] for page in found} == {60}
    listed = [row["path"] for page in found for row in page["rows"]["items"]]
    assert listed == [str(tmp_path / f"broken-{number:02}") for number in range(60)]
    (tmp_path / "broken-00" / "run.json").unlink()
    assert refusal(places, "list_evidence", kind="unreadable", cursor=found[0]["next_cursor"])["code"] == "bad_cursor"


def test_au12_a_run_is_described_verified_and_checked(kept: Path, places: Places) -> None:
    told = ask(places, "describe_run", run="A")
    assert told["counts"]["calls_in_readable_sessions"] == 3 * STEPS
    assert told["sessions"]["items"][0]["steps"] == {"count": STEPS, "first": 0, "last": STEPS - 1}
    assert told["sessions"]["items"][0]["complete"] is True
    assert ask(places, "describe_run", run=key_of(kept.parents[3] / "A")) == told
    assert ask(places, "describe_run", run=str(kept.parents[3] / "A" / "run.json")) == told
    assert ask(places, "verify_run", run="A")["verdict"] == "intact"
    checked = ask(places, "check_run", run="A")
    assert checked["counts"]["fail"] == 0
    assert sum(checked["counts"].values()) == checked["invariants"]["total"]


def test_au12_a_packed_run_is_read_and_leaves_nothing(kept: Path, tmp_path: Path) -> None:
    pack(kept.parents[3] / "A", tmp_path / "all" / "A.tar.zst")
    places = places_of(tmp_path / "all")
    assert ask(places, "describe_run", run="A.tar.zst")["counts"]["calls_in_readable_sessions"] == 3 * STEPS
    assert list(places.scratch.iterdir()) == []


def test_au12_a_comparison_is_summarized_counts_first(kept: Path, places: Places) -> None:
    told = ask(places, "summarize_comparison", comparison=key_of(kept))
    assert list(told)[:3] == ["key", "path", "counts"]
    document = json.loads((kept / "comparison.json").read_text())
    assert told["counts"] == document["counts"]
    assert told["verdict"] == "not_evaluated"
    assert told["ladder"] == document["ladder"]
    assert told["findings"]["total"] == len(document["findings"])
    assert told["findings"]["items"][0]["id"] == "F1"
    assert told["first_difference"]["baseline_id"] == f"baseline:{document['first_difference']['baseline_record_id']}"
    assert told["calls_table"] == ""
    for name in (str(kept), str(kept / "comparison.json"), str(kept / "manifest.json")):
        assert ask(places, "summarize_comparison", comparison=name) == told
    assert refusal(places, "summarize_comparison", comparison="A")["code"] == "no_result"


@pytest.mark.parametrize("rows", ["different", "unaligned", "incomparable"])
def test_au12_pages_hold_each_difference_once_and_in_order(kept: Path, places: Places, rows: str) -> None:
    table = pq.read_table(kept / "calls.parquet", columns=["side", "session_id", "record_id", "status"]).to_pylist()
    wanted = [
        f"{row['side']}:{row['session_id']}:{row['record_id']}"
        for row in table
        if row["status"] == rows and (rows == "unaligned" or row["side"] == "baseline")
    ]
    found = list(pages(places, "list_differences", comparison=key_of(kept), rows=rows))
    assert [row["id"] for page in found for row in page["rows"]["items"]] == wanted
    assert {page["rows"]["total"] for page in found} == {len(wanted)}
    assert all(page["rows"]["shown"] <= PAGE_ROWS for page in found)
    assert (rows == "different") == (len(found) > 2)


def test_au12_differences_are_asked_for_by_step_group_and_class(kept: Path, places: Places) -> None:
    asked = {"comparison": key_of(kept), "step": 3, "group": "originates", "rank": 0}
    found = ask(places, "list_differences", **asked)
    assert found["rows"]["total"] == 1
    row = found["rows"]["items"][0]
    assert (row["step"], row["group"], row["slots"]["items"]) == (3, "originates", ["out[0] float32[64]"])
    assert ask(places, "list_differences", **asked, difference_class="dtype")["rows"]["total"] == 0
    assert ask(places, "list_differences", **asked | {"rank": 1})["rows"]["items"] == []


def test_au12_a_cursor_is_of_one_question_about_one_comparison(kept: Path, places: Places, copy: Path) -> None:
    cursor = ask(places, "list_differences", comparison=key_of(kept), limit=5)["next_cursor"]
    go_on = {"comparison": key_of(kept), "cursor": cursor}
    assert ask(places, "list_differences", **go_on)["rows"]["items"][0]["step"] == 2
    others = places_of(copy.parents[3])
    for where, asked in (
        (others, go_on | {"comparison": str(copy)}),
        (places, go_on | {"step": 3}),
        (places, go_on | {"rows": "unaligned"}),
        (places, go_on | {"cursor": "0-0"}),
        (places, go_on | {"cursor": cursor.replace("-", "-9999999999999999999")}),
    ):
        assert refusal(where, "list_differences", **asked)["code"] == "bad_cursor"
    assert (
        ask(places, "list_differences", **go_on | {"cursor": f"{cursor.partition('-')[0]}-999999"})["rows"]["items"]
        == []
    )


def test_au12_lines_figures_and_calls_are_explained(kept: Path, places: Places) -> None:
    for identity, records in (
        ("F1", 2),
        ("counts.different", 2 * (STEPS - 1)),
        ("candidate:2", 1),
        ("candidate:rank-0:2", 1),
    ):
        found = ask(places, "explain", comparison=key_of(kept), id=identity)
        assert found["id"] == identity
        assert found["records"]["total"] == records
        assert all(record["journal_line"] > 0 for record in found["records"]["items"])
    assert refusal(places, "explain", comparison=key_of(kept), id="F99")["code"] == "no_such_id"


def test_au12_a_document_alone_says_why_it_has_no_pages(kept: Path, tmp_path: Path) -> None:
    shutil.copy(kept / "comparison.json", tmp_path / "alone.json")
    places = places_of(tmp_path)
    told = ask(places, "summarize_comparison", comparison="alone.json")
    assert "without its table" in told["calls_table"]
    assert refusal(places, "list_differences", comparison="alone.json")["code"] == "no_calls_table"
    assert ask(places, "explain", comparison="alone.json", id="F1")["records"] == {"total": 2, "shown": 0, "items": []}


def test_au12_answers_hold_to_their_schemas_and_bounds(kept: Path, places: Places) -> None:
    """AU-13, too: a name of ten thousand characters, with markup, escapes and text that runs backwards."""
    run, comparison = {"run": "A"}, {"comparison": key_of(kept)}
    asked = {
        "list_evidence": {},
        "describe_run": run,
        "verify_run": run,
        "check_run": run,
        "summarize_comparison": comparison,
        "list_differences": comparison,
        "explain": comparison | {"id": "F1"},
    }
    assert set(asked) == set(TOOLS)
    for name, arguments in asked.items():
        assert Draft202012Validator(schema_of(TOOLS[name].asks)).is_valid(arguments)
        found = ask(places, name, **arguments)
        Draft202012Validator(schema_of(TOOLS[name].answers)).validate(found)
        assert size_of(found) <= ANSWER_CHARACTERS
        assert all(text.isprintable() and len(text) <= TEXT_CHARACTERS[0] for text in texts(found)), name
    rows = ask(places, "list_differences", **comparison)["rows"]["items"]
    assert any("\\u202e" in row["function"] or "…" in row["function"] for row in rows)


def test_au12_nothing_is_written(kept: Path, places: Places) -> None:
    def state() -> dict[str, tuple[int, int]]:
        found = kept.parents[3].rglob("*")
        return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in found}

    before = state()
    for name in ("describe_run", "verify_run", "check_run"):
        ask(places, name, run="B")
    ask(places, "explain", comparison=key_of(kept), id="F1")
    list(pages(places, "list_differences", comparison=key_of(kept)))
    assert state() == before


@pytest.mark.parametrize(
    "arguments",
    [{}, {"run": 3}, {"run": ""}, {"run": "A", "more": 1}, {"run": "x" * 5000}, {"run": None}],
)
def test_au12_wrong_arguments_are_refused(places: Places, arguments: dict[str, object]) -> None:
    assert refusal(places, "describe_run", **arguments)["code"] == "bad_arguments"


@pytest.mark.parametrize(
    "arguments", [{"limit": 51}, {"limit": 0}, {"rank": -1}, {"rows": "ok"}, {"group": "odd"}, {"rank": 2**40}]
)
def test_au12_wrong_questions_are_refused(kept: Path, places: Places, arguments: dict[str, object]) -> None:
    asked = {"comparison": key_of(kept)} | arguments
    assert refusal(places, "list_differences", **asked)["code"] == "bad_arguments"
    assert refusal(places, "no_such", **asked)["code"] == "no_such_tool"


@pytest.mark.parametrize("name", ["/etc/passwd", "..", "../outside", "A/../../outside", "link", "link/run.json", "/"])
def test_au12_a_path_outside_of_the_folders_is_refused(copy: Path, name: str) -> None:
    folder = copy.parents[3]
    shutil.move(folder / "A", folder.parent / "outside")
    (folder / "link").symlink_to(folder.parent / "outside")
    places = places_of(folder)
    for tool, argument in (("describe_run", "run"), ("check_run", "run"), ("summarize_comparison", "comparison")):
        assert refusal(places, tool, **{argument: name})["code"] == "outside_folders"
    assert keys(places, "run") == [key_of(folder / "B")]


@pytest.mark.parametrize("name", ["nothing", "0123456789ab", "a\0b", "s3://bucket/run", "A/sessions"])
def test_au12_a_name_of_nothing_is_refused(places: Places, name: str) -> None:
    assert refusal(places, "describe_run", run=name)["code"] in {"no_such_evidence", "not_a_run"}


def test_au12_links_inside_of_evidence_lead_nowhere(copy: Path) -> None:
    """A comparison names journals by path, and any file of a run may be a link: outside there is none."""
    folder = copy.parents[3]
    shutil.move(folder / "A", folder.parent / "outside")
    places = places_of(folder)
    found = ask(places, "explain", comparison=str(copy), id="F1")
    lines = {record["id"].partition(":")[0]: record["journal_line"] for record in found["records"]["items"]}
    assert lines == {"baseline": 0, "candidate": 0}  # it names A and B where they were first, which is elsewhere
    journal = folder / "B" / "sessions" / "rank-0" / "calls.jsonl"
    os.replace(journal, folder.parent / "journal")
    journal.symlink_to(folder.parent / "journal")
    for tool in ("describe_run", "check_run"):
        assert refusal(places, tool, run="B")["code"] == "not_found"
    assert ask(places, "verify_run", run="B")["verdict"] == "missing"
    table = copy / "calls.parquet"
    os.replace(table, folder.parent / "table")
    table.symlink_to(folder.parent / "table")
    assert refusal(places, "list_differences", comparison=str(copy))["code"] == "not_found"


def test_au12_damage_is_told(copy: Path) -> None:
    folder, places = copy.parents[3], places_of(copy.parents[3])
    journal = folder / "B" / "sessions" / "rank-0" / "calls.jsonl"
    journal.write_bytes(journal.read_bytes()[:5000])
    assert ask(places, "describe_run", run="B")["sessions"]["items"][0]["complete"] is False
    verified = ask(places, "verify_run", run="B")
    assert verified["verdict"] == "changed"
    assert verified["items"]["items"][0]["status"] == "changed"
    table = copy / "calls.parquet"
    table.write_bytes(table.read_bytes()[:-100])
    assert refusal(places, "list_differences", comparison=str(copy))["code"] == "damaged_result"
    assert refusal(places, "explain", comparison=str(copy), id="F1")["code"] == "damaged_result"
    assert "not what its manifest says" in ask(places, "summarize_comparison", comparison=str(copy))["calls_table"]
    (copy / "comparison.json").write_text("{}")
    (folder / "A" / "run.json").write_text('{"format": "\x1b[31m')
    assert refusal(places, "summarize_comparison", comparison=str(copy))["code"] == "damaged_result"
    found = ask(places, "list_evidence", kind="unreadable")
    assert {row["path"] for row in found["rows"]["items"]} == {str(folder / "A"), str(copy)}
    assert refusal(places, "describe_run", run=found["rows"]["items"][0]["key"])["code"]


def test_au13_a_hostile_document_is_bounded(copy: Path, tmp_path: Path) -> None:
    document = json.loads((copy / "comparison.json").read_text())
    finding = document["findings"][0]
    document["findings"] = [finding | {"id": f"F{n}", "sentence": ODD, "strength": ODD} for n in range(100)]
    document["undetermined_by_reason"] = {"baseline": {f"{n}{ODD}": n for n in range(300)}, ODD: {ODD: 1}}
    document["coverage"]["baseline"]["gaps"] = {f"{n}\u202e": n for n in range(3000)}
    document["levels_compared"] = [ODD] * 100
    document["limits"] = [{"code": ODD, "text": ODD}] * 100
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "odd.json").write_text(json.dumps(document))
    told = ask(places_of(tmp_path / "odd"), "summarize_comparison", comparison="odd.json")
    assert size_of(told) <= ANSWER_CHARACTERS
    assert told["findings"]["total"] == 100
    assert 0 < told["findings"]["shown"] == len(told["findings"]["items"])
    assert all(text.isprintable() for text in texts(told))


def test_au12_two_folders_are_two_shelves(kept: Path, tmp_path: Path) -> None:
    write_run(tmp_path / "more" / "C")
    places = places_of(kept.parents[3], tmp_path / "more", tmp_path / "more")
    assert ask(places, "list_evidence")["counts"]["run"] == 3
    assert ask(places, "describe_run", run="C")["path"] == str(tmp_path / "more" / "C")


def test_au12_a_comparison_kept_without_its_table_is_explained_without_records(tmp_path: Path) -> None:
    a, b = write_run(tmp_path / "A"), write_run(tmp_path / "B", factor=2.0)
    kept = keep_comparison(a, b, formats=("json",))
    found = ask(places_of(tmp_path), "explain", comparison=str(kept), id="F1")
    assert found["records"]["items"] == []
    assert found["facts"]["total"] > 0
