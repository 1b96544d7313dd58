"""explain and why-not: every figure leads to files, lines and record ids; an unpaired call says why (P9, CP-3c)."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from paritrace.compare.result import LADDER
from paritrace.errors import RequestError
from paritrace.files import LOCAL
from paritrace.reports import explanation, why_not
from paritrace.reports.calls_table import CallsTable
from paritrace.reports.journal_lines import lines_of_calls
from paritrace.reports.keeping import NAMES, Keeping, keep
from paritrace.reports.kept_result import KeptResult, open_result
from paritrace.reports.manifest import SourceFile
from tests.reports import call_rows, comparisons

JOURNALS = {
    "a": b'{"type":"journal"}\n["c",211,212,-1]\n["d",211,"o"]\n["c",212,213,-1]\n["c",213,214]\n["c",214,215]\n',
    "b": b'{"type":"journal"}\n{"type":"site"}\n["c",211,1]\n["c",213,1]\n["c",214,1]\n["c",216,1]\n["c",217,1]\n'
    b'["c",218,1]\n',
}


def kept(folder: Path, *, formats: tuple[str, ...] = tuple(NAMES)) -> KeptResult:
    sources = []
    for side, name in (("baseline", "a"), ("candidate", "b")):
        path = f"sessions/session-{name}/calls.jsonl"
        (folder / name / path).parent.mkdir(parents=True)
        (folder / name / path).write_bytes(JOURNALS[name])
        sources.append(SourceFile(side, f"session-{name}", path, len(JOURNALS[name]), "0" * 64))
    found = comparisons.parted()
    found = replace(
        found,
        baseline=replace(found.baseline, path=str(folder / "a")),
        candidate=replace(found.candidate, path=str(folder / "b")),
    )
    keep(
        Keeping(comparison=found, rows=call_rows.rows(), sources=tuple(sources), made_by="test", formats=formats),
        folder / "result",
        files=LOCAL,
    )
    return open_result(folder / "result", files=LOCAL)


def test_p9_a_finding_leads_to_the_lines_of_both_journals(tmp_path: Path) -> None:
    found = explanation.explain(kept(tmp_path), "F1", files=LOCAL)
    assert [(record.id, record.journal_line) for record in found.records] == [("baseline:212", 4), ("candidate:214", 5)]
    assert found.records[0].journal == str(tmp_path / "a/sessions/session-a/calls.jsonl")
    assert found.statement == "The runs part at step 0, forward, in encoder.layers.2.self_attn (rank 0)."
    assert "strength: bits only" in found.facts
    assert any("0 undetermined calls" in fact for fact in found.facts)
    assert {file.role for file in found.files} == {"journal, baseline", "journal, candidate", "export"}


def test_p9_a_count_names_its_rows_and_they_add_up(tmp_path: Path) -> None:
    result = kept(tmp_path)
    found = explanation.explain(result, "counts.paired", files=LOCAL)
    assert found.total == 3
    assert [record.id for record in found.records] == ["baseline:211", "baseline:212", "baseline:213"]
    assert found.how_counted.endswith("calls.parquet with side = baseline and correspondence = paired")
    unpaired = explanation.explain(result, "undetermined.unequal_between_anchors", files=LOCAL)
    assert unpaired.total == 4


@pytest.mark.parametrize("figure", comparisons.parted().counts.__struct_fields__)
def test_p9_every_count_can_be_explained(tmp_path: Path, figure: str) -> None:
    found = explanation.explain(kept(tmp_path), f"counts.{figure}", files=LOCAL)
    value = vars_of_counts()[figure]
    assert found.statement == f"{figure} {value:,}"
    assert found.how_counted


def vars_of_counts() -> dict[str, int]:
    counts = comparisons.parted().counts
    return {name: getattr(counts, name) for name in counts.__struct_fields__}


@pytest.mark.parametrize("rung", LADDER)
def test_p9_every_rung_can_be_explained(tmp_path: Path, rung: str) -> None:
    found = explanation.explain(kept(tmp_path), f"ladder.{rung}", files=LOCAL)
    assert found.statement.startswith(f"{rung} {comparisons.parted().ladder[rung].value} at step 0")
    assert found.facts


def test_p9_a_rung_leads_to_what_differs(tmp_path: Path) -> None:
    result = kept(tmp_path)
    assert "model/attention.py" in explanation.explain(result, "ladder.code", files=LOCAL).facts[0]
    assert explanation.explain(result, "ladder.forward", files=LOCAL).records[0].id == "baseline:212"


def test_every_anchor_of_every_screen_can_be_explained(tmp_path: Path) -> None:
    result = kept(tmp_path)
    for anchor in anchors(tmp_path / "result" / "first_screen.txt"):
        assert explanation.as_text(explanation.explain(result, anchor, files=LOCAL))
    for other in (comparisons.agreeing(), comparisons.outside_parameter(), comparisons.unnamed()):
        keep(
            Keeping(comparison=other, rows=[], sources=(), made_by="test"),
            tmp_path / str(id(other)),
            files=LOCAL,
        )
        opened = open_result(tmp_path / str(id(other)), files=LOCAL)
        for anchor in anchors(opened.directory / "first_screen.txt"):
            assert explanation.as_text(explanation.explain(opened, anchor, files=LOCAL))


def anchors(screen: Path) -> list[str]:
    labels = [line[1 : line.index("]")] for line in screen.read_text().splitlines() if line.startswith("[")]
    assert len(labels) >= 6
    return labels


def test_a_call_can_be_explained_by_its_id(tmp_path: Path) -> None:
    found = explanation.explain(kept(tmp_path), "candidate:213", files=LOCAL)
    assert [(record.id, record.journal_line) for record in found.records] == [("candidate:213", 4)]
    assert "unaligned (unequal_between_anchors)" in found.records[0].what


@pytest.mark.parametrize("identity", ["F9", "", "ladder.nothing", "counts.none", "candidate:999", "changed.7", "x:1"])
def test_an_unknown_id_is_refused_and_says_what_is_known(tmp_path: Path, identity: str) -> None:
    with pytest.raises(RequestError) as raised:
        explanation.explain(kept(tmp_path), identity, files=LOCAL)
    assert raised.value.code == "no_such_id"
    assert raised.value.fix


def test_without_the_runs_the_record_ids_stay_and_the_line_is_said_to_be_missing(tmp_path: Path) -> None:
    result = kept(tmp_path)
    (tmp_path / "a/sessions/session-a/calls.jsonl").unlink()
    found = explanation.explain(result, "F1", files=LOCAL)
    assert (found.records[0].id, found.records[0].journal_line) == ("baseline:212", 0)
    assert any("journal line not at hand" in line for line in explanation.as_text(found))


def test_without_calls_parquet_the_answer_says_so(tmp_path: Path) -> None:
    found = explanation.explain(kept(tmp_path, formats=("json",)), "counts.paired", files=LOCAL)
    assert "which was not kept" in found.how_counted


@pytest.mark.parametrize("size", [1, 3, 7, 4096])
def test_journal_lines_do_not_depend_on_the_chunks(size: int) -> None:
    data = JOURNALS["b"] + b'["c",300,1]'
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    assert lines_of_calls(chunks, [218, 211, 300, 77]) == {211: 3, 218: 8, 300: 9}


def test_cp3c_why_not_gives_reason_key_candidates_and_neighbours(tmp_path: Path) -> None:
    table = CallsTable(kept(tmp_path).calls_path())
    answer = why_not.why_not(table, why_not.find_call(table, "candidate:213"))
    assert not answer.is_paired
    assert answer.reason == "unequal_between_anchors"
    assert answer.call.key == "aten._to_copy.default at model/attention.py:41 in encoder.layers.2.self_attn"
    assert (answer.same_key_here, answer.same_key_there) == (1, 0)
    assert answer.none_was_unique == "no call of the other side has this key in this stream and scope"
    assert answer.paired_before is not None
    assert answer.paired_after is not None
    assert (answer.paired_before.record_id, answer.paired_after.record_id) == (211, 214)


def test_cp3c_why_not_counts_the_candidates_of_the_same_key(tmp_path: Path) -> None:
    table = CallsTable(kept(tmp_path).calls_path())
    answer = why_not.why_not(table, why_not.find_call(table, "candidate:217"))
    assert (answer.same_key_here, answer.same_key_there) == (2, 1)
    assert [call.identity for call in answer.candidates] == ["baseline:214"]
    assert answer.none_was_unique.startswith("2 calls of this key on this side, 1 on the other, 1 of those without")
    assert answer.paired_after is None
    text = "\n".join(why_not.as_text(answer))
    assert "no pair: the stream begins or ends here" in text
    assert "the calls between two sure pairs are not the same on both sides" in text


def test_why_not_of_a_paired_call_says_with_what(tmp_path: Path) -> None:
    table = CallsTable(kept(tmp_path).calls_path())
    answer = why_not.why_not(table, why_not.find_call(table, "baseline:212"))
    assert answer.is_paired
    assert "with candidate:214, basis unique_key; unreviewed" in "\n".join(why_not.as_text(answer))


def test_an_id_that_two_calls_share_is_not_guessed(tmp_path: Path) -> None:
    table = CallsTable(kept(tmp_path).calls_path())
    with pytest.raises(RequestError, match="names 2 calls") as raised:
        why_not.find_call(table, "211")
    assert "baseline:session-a:211" in raised.value.fix
    assert why_not.find_call(table, "candidate:session-b:211").identity == "candidate:211"
    assert why_not.find_call(table, "217").identity == "candidate:217"


@pytest.mark.parametrize("identity", ["candidate:x", "other:1", "a:b:c:1", "", "candidate:" + "9" * 30, "candidate:-1"])
def test_what_is_no_id_of_a_call_is_refused(tmp_path: Path, identity: str) -> None:
    with pytest.raises(RequestError) as raised:
        why_not.find_call(CallsTable(kept(tmp_path).calls_path()), identity)
    assert raised.value.code == "no_such_id"
