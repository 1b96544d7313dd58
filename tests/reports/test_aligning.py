"""Alignment maps: what they change, every problem at once, sources untouched, whole or not at all (CP-14, CP-22)."""

import json
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from paritrace.compare.alignment import Relation
from paritrace.compare.alignment_facts import CallFacts, Wanted
from paritrace.compare.alignment_file import read_map
from paritrace.compare.alignment_slots import compare_partition
from paritrace.compare.result import Comparison, Mark
from paritrace.errors import EvidenceError, HostError, RequestError
from paritrace.files import LOCAL, Files
from paritrace.reports import why_not
from paritrace.reports.aligned_table import calls_of
from paritrace.reports.aligning import align, open_artifact
from paritrace.reports.alignment_template import template
from paritrace.reports.calls_table import CallsTable
from paritrace.reports.explanation import explain
from paritrace.reports.kept_result import open_result
from paritrace.testing.faults import Fault, FaultyFiles, Stopped, visible_files
from tests.reports.aligned_runs import (
    NARROW,
    PART_A,
    PART_B,
    REST,
    THEIR_F,
    THEIR_G,
    WHOLE,
    F,
    G,
    artifact,
    digest_of,
    pair,
    rows_of,
    slot,
    write_map,
)  # fmt: skip
from tests.reports.test_first_screen import assert_within_bounds

FILES = ("calls.parquet", "first_screen.txt", "comparison.json", "alignment_map.json", "manifest.json")
OBSERVED = ("function", "file", "line", "module", "stream", "scope", "key", "step", "microbatch", "phase", "level")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return artifact(tmp_path_factory.mktemp("artifact"))


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def applied(kept: Path, place: Path, *, files: Files = LOCAL, **more: Any) -> Comparison:
    path = write_map(place / "map.json", kept, **more)
    return align(open_artifact(kept, files=LOCAL), path, place / "out", files=files, made_by="paritrace 0")


def refused(kept: Path, place: Path, **more: Any) -> tuple[str, ...]:
    before = bytes_of(kept)
    with pytest.raises(RequestError) as caught:
        applied(kept, place, **more)
    assert caught.value.code == "bad_alignment_map"
    assert not (place / "out").exists()
    assert bytes_of(kept) == before
    return caught.value.details


def is_consistent(folder: Path, found: Comparison) -> None:
    """The counts of the document are those of the rows."""
    rows = rows_of(folder).values()
    for side in ("baseline", "candidate"):
        mine = [row for row in rows if row["side"] == side]
        assert sum(row["correspondence"] == "paired" for row in mine) == found.counts.paired
        unpaired = Counter(row["reason"] for row in mine if row["correspondence"] == "undetermined")
        assert dict(unpaired) == found.undetermined_by_reason[side]
        by_place = sum(place.count for place in found.undetermined_by_place if place.side == side)
        assert by_place == unpaired.total() == getattr(found.counts, f"undetermined_{side}")
        statuses = Counter(row["status"] for row in mine if row["correspondence"] == "paired")
        wanted = {"ok": found.counts.ok, "different": found.counts.different, "incomparable": found.counts.incomparable}
        assert statuses == Counter(wanted)
    assert (
        dict(Counter(row["basis"] for row in rows if row["side"] == "baseline" and row["basis"]))
        == found.pairs_by_basis
    )
    everything = rows_of(folder)
    for (side, rank, record), row in everything.items():
        if row["partner"] is not None:
            other = "candidate" if side == "baseline" else "baseline"
            assert everything[other, rank, row["partner"]]["partner"] == record


EVERY_DECISION = [
    pair("confirm", WHOLE, WHOLE),
    pair("replace", F[0], THEIR_F[1], reason="the second of three is ours"),
    pair("reject", G, THEIR_G),
    pair("undetermined", F[1], "--"),
    pair("undetermined", "--", THEIR_F[2]),
]


def test_cp14_every_decision_is_applied_and_recorded(kept: Path, tmp_path: Path) -> None:
    found = applied(kept, tmp_path, pairs=EVERY_DECISION)
    rows = rows_of(tmp_path / "out")
    told = {key: (row["validation"], row["partner"], row["basis"], row["reason"]) for key, row in rows.items()}
    assert told["baseline", 0, WHOLE] == ("confirmed", WHOLE, "scope", None)
    assert told["baseline", 0, F[0]] == ("replaced", THEIR_F[1], "reviewed", None)
    assert told["candidate", 0, THEIR_F[1]] == ("replaced", F[0], "reviewed", None)
    assert told["baseline", 0, G] == ("rejected", None, None, "review")
    assert told["candidate", 0, THEIR_G] == ("rejected", None, None, "review")
    assert told["baseline", 0, F[1]] == ("undetermined", None, None, "review")
    assert told["baseline", 1, F[0]] == (None, None, None, "unequal_between_anchors")  # of another rank: untouched
    assert told["baseline", 0, PART_A][0] == "unreviewed"
    is_consistent(tmp_path / "out", found)
    assert found.review is not None
    assert (found.verdict, found.review.reviewer, found.review.source_sha256) == (
        "not_evaluated",
        "Ada",
        digest_of(kept),
    )
    assert [one.reason for one in found.review.pairs][:2] == ["read both sources", "the second of three is ours"]
    assert found.review.pairs[1].status == "different"  # equal outputs, other inputs
    agreements = {s["name"]: s["agreement"] for s in rows["baseline", 0, F[0]]["slots"]}
    assert agreements == {"args[0]": "different", "out[0]": "different"}


def test_cp14_original_observations_and_pairs_are_kept(kept: Path, tmp_path: Path) -> None:
    found = applied(kept, tmp_path, pairs=EVERY_DECISION)
    before, after = rows_of(kept), rows_of(tmp_path / "out")
    assert list(after) == list(before)
    for key, row in after.items():
        was = before[key]
        assert [row[name] for name in OBSERVED] == [was[name] for name in OBSERVED]
        for name in ("status", "correspondence", "basis", "reason", "partner", "reordered", "group"):
            assert row[f"source_{name}"] == was[name]
        without = [{k: v for k, v in s.items() if k != "agreement"} for s in row["slots"]]
        assert without == [{k: v for k, v in s.items() if k != "agreement"} for s in was["slots"]]
    source = open_result(kept, files=LOCAL).comparison
    assert (found.ranks_compared, found.steps_compared, found.coverage, found.baseline) == (
        source.ranks_compared, source.steps_compared, source.coverage, source.baseline,
    )  # fmt: skip


def test_cp14_a_map_with_five_mistakes_lists_five(kept: Path, tmp_path: Path) -> None:
    told = refused(
        kept,
        tmp_path,
        reviewer="  ",
        pairs=[
            pair("confirm", F[0], THEIR_F[0]),  # no pair
            pair("replace", 999, THEIR_F[1]),  # no such call
            pair("undetermined", G, "--"),  # has a partner
            pair("replase", F[1], THEIR_F[2]),  # no such decision
        ],
    )
    assert len(told) == 5
    starts = ("pairs[3].decision:", "reviewer:", "pairs[0]:", "pairs[1]:", "pairs[2]:")
    assert all(any(line.startswith(start) for line in told) for start in starts)


CONFIRMED = [pair("confirm", G, THEIR_G)]
OF_HEADS: list[tuple[dict[str, Any], list[str]]] = [
    ({"artifact_sha256": "0" * 64}, ["artifact_sha256: the map is of another artifact"]),
    ({"format": "x", "version": "2.0"}, ["format:", "version:"]),
    ({"reviewer": None}, ["reviewer: is missing"]),
    ({"reviewer": 5, "pairs": []}, ["reviewer: expected `str`", "the map says nothing"]),
    ({"revewer": "x"}, ["revewer: there is no such key; reviewer is meant?"]),
    ({"reason": ""}, ["pairs[0]: no reason is given"]),
    ({"pairs": "all"}, ["pairs: is no list"]),
]
OF_PAIRS: list[tuple[list[Any], list[str]]] = [
    ([pair("replace", F[0], "--")], ["pairs[0]: `replace` takes two record ids"]),
    ([pair("undetermined", F[0], THEIR_F[0])], ["pairs[0]: `undetermined` takes one record id"]),
    ([pair("replace", G, THEIR_G)], ["pairs[0]: 12 and 16 are a pair already: confirm it"]),
    ([pair("replace", WHOLE, THEIR_F[0])], ["pairs[0]: 0 is of level module and 10 of level op"]),
    ([pair("reject", F[0], THEIR_F[0])], ["pairs[0]: the artifact does not pair 8 with 10"]),
    (
        [pair("confirm", G, THEIR_G, rank=7)],
        ["pairs[0]: the baseline has no call 12 on rank 7", "pairs[0]: the candidate has no call 16 on rank 7"],
    ),
    (
        [pair("confirm", 2**70, -(2**70))],
        [f"pairs[0]: the baseline has no call {2**70} on", f"pairs[0]: the candidate has no call {-(2**70)} on"],
    ),
    (
        [pair("confirm", G, THEIR_G, baseline_session="no")],
        ["pairs[0]: the baseline has no call 12 on rank 0 in session no"],
    ),
    (
        [pair("replace", F[0], THEIR_F[0]), pair("replace", F[1], THEIR_F[0])],
        ["candidate 10 on rank 0 is decided 2 times: pairs[0], pairs[1]"],
    ),
    (
        [{"rank": "0"}],
        [f"pairs[0].{key}: is missing" for key in ("decision", "baseline", "candidate")] + ["pairs[0].rank: expected"],
    ),
]
OF_SLOTS: list[tuple[str, list[Any], list[Any], str]] = [
    ("same", [slot(0)], [], "`same` compares one tensor with one, here are 1 and 0"),
    ("xor_partition", [slot(0)], [slot(2)], "`xor_partition` takes one whole and two or more parts"),
    (
        "same",
        [slot(0, name="x")],
        [slot(0)],
        "baseline rank 0, 0.o:x: there is no such tensor; recorded are i:args[0],",
    ),
    ("xor_partition", [slot(0)], [slot(2), slot(2)], "candidate rank 0, 2.o:out[0] is named twice"),
    ("undetermined", [], [], "`undetermined` names at least one tensor"),
]
MISTAKES: list[tuple[dict[str, Any], list[str]]] = [
    *OF_HEADS,
    *(({"pairs": pairs}, expected) for pairs, expected in OF_PAIRS),
    *(
        ({"slots": [{"relation": relation, "baseline": ours, "candidate": theirs}]}, [f"slots[0]: {expected}"])
        for relation, ours, theirs, expected in OF_SLOTS
    ),
]


@pytest.mark.parametrize(("more", "expected"), MISTAKES)
def test_cp14_each_mistake_is_told(kept: Path, tmp_path: Path, more: dict[str, Any], expected: list[str]) -> None:
    told = refused(kept, tmp_path, **({"pairs": CONFIRMED} | more))
    assert len(told) == len(expected)
    for line, start in zip(sorted(told), sorted(expected), strict=True):
        assert line.startswith(start)


@settings(max_examples=60, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=4),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["format", "pairs", "slots", "rank", "decision", "baseline", "x"]), inner, max_size=5
            )
        ),
        max_leaves=12,
    )
)
def test_cp14_whatever_the_file_holds_it_is_read_or_its_problems_are_told(document: object) -> None:
    read = read_map(json.dumps(document).encode())
    assert read.problems or read.review is not None
    assert read_map(b"\xff{").problems
    assert read_map(b"").problems
    assert read_map(b"[" * 100_000).problems
    assert read_map(b'{"pairs":' * 100_000).problems


def test_cp22_the_source_is_byte_identical_and_out_is_never_overwritten(kept: Path, tmp_path: Path) -> None:
    before = bytes_of(kept.parent)
    applied(kept, tmp_path, pairs=EVERY_DECISION)
    assert bytes_of(kept.parent) == before
    first = bytes_of(tmp_path / "out")
    with pytest.raises(RequestError) as caught:
        applied(kept, tmp_path, pairs=EVERY_DECISION[:1])
    assert caught.value.code == "already_there"
    assert bytes_of(tmp_path / "out") == first


def test_cp22_the_same_map_makes_the_same_bytes(kept: Path, tmp_path: Path) -> None:
    for name in ("x", "y"):
        (tmp_path / name).mkdir()
        applied(kept, tmp_path / name, pairs=EVERY_DECISION)
    ours, theirs = bytes_of(tmp_path / "x" / "out"), bytes_of(tmp_path / "y" / "out")
    shown = {"first_screen.txt", "manifest.json"}  # these name the folder itself, or the screen that does
    assert {name: data for name, data in ours.items() if name not in shown} == {
        name: data for name, data in theirs.items() if name not in shown
    }
    assert ours["alignment_map.json"] == (tmp_path / "x" / "map.json").read_bytes()


@pytest.mark.parametrize("name", ["calls.parquet", "comparison.json", "first_screen.txt"])
def test_cp22_an_artifact_that_is_not_what_its_manifest_says_is_refused(tmp_path: Path, name: str) -> None:
    kept = artifact(tmp_path)
    with (kept / name).open("ab") as file:
        file.write(b" ")
    with pytest.raises(EvidenceError, match=name) as caught:
        open_artifact(kept, files=LOCAL)
    assert caught.value.code == "damaged_result"


ENDING = 40  # operations at the end: whole files get their names there, one after the other, and the folder its own


def places_of_faults(kept: Path, place: Path) -> list[int]:
    """Operations to stop at: the first, many in between, every one at the end."""
    files = FaultyFiles(at=10**9, fault=Fault.STOP)
    place.mkdir()
    applied(kept, place, files=files, pairs=EVERY_DECISION)
    total = files.faulty.count
    return [*range(1, 12), *range(12, total - ENDING, 41), *range(total - ENDING, total + 1)]


@pytest.mark.slow
@pytest.mark.parametrize("fault", [Fault.STOP, Fault.TEAR_AND_STOP, Fault.DONE_THEN_STOP, Fault.FAIL])
def test_p4_a_kill_or_fault_leaves_no_result_or_a_whole_one(kept: Path, tmp_path: Path, fault: Fault) -> None:
    before = bytes_of(kept)
    seen: set[bool] = set()
    for at in places_of_faults(kept, tmp_path / "all"):
        place = tmp_path / str(at)
        place.mkdir()
        files = FaultyFiles(at=at, fault=fault)
        with suppress(Stopped, HostError):
            applied(kept, place, files=files, pairs=EVERY_DECISION)
        files.faulty.release()
        assert visible_files(place) - {"map.json"} <= {f"out/{name}" for name in FILES}
        if (place / "out").exists():
            open_artifact(place / "out", files=LOCAL)  # every file is what its manifest says
        seen.add((place / "out").exists())
    assert seen == ({False, True} if fault is Fault.DONE_THEN_STOP else {False})
    assert bytes_of(kept) == before


def test_cp14_a_fault_that_is_met_leaves_nothing_behind(kept: Path, tmp_path: Path) -> None:
    with pytest.raises(HostError):
        applied(kept, tmp_path, files=FaultyFiles(at=9, fault=Fault.FAIL), pairs=EVERY_DECISION)
    assert {path.name for path in tmp_path.iterdir()} <= {"map.json"}


def test_cp14_it_works_offline_and_the_result_is_read_like_any_other(tmp_path: Path) -> None:
    kept = artifact(tmp_path)
    for run in ("A", "B"):
        (tmp_path / run).rename(tmp_path / f"gone-{run}")
    applied(kept, tmp_path, pairs=EVERY_DECISION)
    result = open_result(tmp_path / "out", files=LOCAL)
    assert result.manifest.aligned_from == digest_of(kept)
    screen = (tmp_path / "out" / "first_screen.txt").read_text()
    assert_within_bounds(screen)
    assert "[review]    by Ada: 1 confirmed, 1 replaced, 1 rejected, 2 kept undetermined" in screen
    told = explain(result, "review", files=LOCAL)
    assert any("the second of three is ours" in fact for fact in told.facts)
    table = CallsTable(result.calls_path())
    answer = why_not.why_not(table, why_not.find_call(table, f"baseline:{result_session(table)}:{F[1]}"))
    assert (answer.reason, answer.is_paired) == ("review", False)
    again = applied_again(tmp_path)
    assert again.review is not None  # a reviewed result may be reviewed further
    assert again.review.source_sha256 == digest_of(tmp_path / "out")


def result_session(table: CallsTable) -> str:
    return next(session for side, rank, session in table.sessions() if (side, rank) == ("baseline", 0))


def applied_again(place: Path) -> Comparison:
    path = write_map(place / "more.json", place / "out", pairs=[pair("confirm", F[0], THEIR_F[1])])
    source = open_artifact(place / "out", files=LOCAL)
    return align(source, path, place / "further", files=LOCAL, made_by="paritrace 0")


def test_cp14_findings_on_a_rejected_pair_are_withdrawn_and_their_rungs_open(kept: Path, tmp_path: Path) -> None:
    source = open_result(kept, files=LOCAL).comparison
    first = source.first_difference
    assert first is not None
    found = applied(
        kept, tmp_path, pairs=[pair("reject", first.baseline_record_id, first.candidate_record_id, rank=first.rank)]
    )
    assert found.review is not None
    assert (source.findings[0].id,) == found.review.withdrawn[:1]
    assert found.first_difference is None
    assert (source.ladder["forward"], found.ladder["forward"]) == (Mark.BEYOND, Mark.UNDETERMINED)
    assert found.ladder["weights"] == source.ladder["weights"]


def test_cp14_a_replaced_pair_displaces_both_old_partners(kept: Path, tmp_path: Path) -> None:
    found = applied(kept, tmp_path, pairs=[pair("replace", PART_A, PART_B)])
    assert found.review is not None
    assert set(found.review.pairs[0].displaced) == {("candidate", PART_A), ("baseline", PART_B)}
    rows = rows_of(tmp_path / "out")
    assert rows["baseline", 0, PART_B]["validation"] == "displaced"
    assert rows["baseline", 0, PART_A]["difference_class"] == "shape"
    is_consistent(tmp_path / "out", found)


def test_cp14_two_swapped_pairs_are_mended_together(kept: Path, tmp_path: Path) -> None:
    found = applied(kept, tmp_path, pairs=[pair("replace", PART_A, PART_B), pair("replace", PART_B, PART_A)])
    assert found.review is not None
    assert [one.displaced for one in found.review.pairs] == [(), ()]
    is_consistent(tmp_path / "out", found)


# --- selected tensors -------------------------------------------------------------------------------------------------


def related(kept: Path, place: Path, relation: str, ours: list[Any], theirs: list[Any]) -> tuple[str, str]:
    found = applied(kept, place, slots=[{"relation": relation, "baseline": ours, "candidate": theirs}])
    assert found.review is not None
    (one,) = found.review.slots
    return one.agreement, one.why


@pytest.mark.parametrize(
    ("relation", "ours", "theirs", "expected"),
    [
        ("same", [slot(WHOLE)], [slot(WHOLE, rank=1)], ("equal", "")),
        ("same", [slot(F[0])], [slot(THEIR_F[0])], ("equal", "")),
        ("same", [slot(F[0])], [slot(THEIR_F[1], rank=1)], ("different", "")),
        ("same", [slot(WHOLE)], [slot(PART_A)], ("different", "")),
        ("xor_partition", [slot(WHOLE)], [slot(PART_A), slot(PART_B)], ("not_comparable", "consistent_only")),
        ("xor_partition", [slot(PART_B), slot(PART_A, rank=1)], [slot(WHOLE)], ("not_comparable", "consistent_only")),
        ("elements_partition", [slot(WHOLE)], [slot(PART_A), slot(PART_B)], ("not_comparable", "consistent_only")),
        ("xor_partition", [slot(NARROW)], [slot(NARROW), slot(REST)], ("not_comparable", "consistent_only")),
        ("xor_partition", [slot(WHOLE)], [slot(PART_A), slot(PART_A, rank=1)], ("not_comparable", "no_partition")),
        ("xor_partition", [slot(WHOLE)], [slot(PART_A), slot(NARROW)], ("not_comparable", "dtype")),
        ("undetermined", [slot(WHOLE)], [], ("undetermined", "")),
    ],
)  # fmt: skip
def test_cp14_selected_tensors_are_compared_across_calls_functions_and_ranks(
    kept: Path, tmp_path: Path, relation: str, ours: list[Any], theirs: list[Any], expected: tuple[str, str]
) -> None:
    assert related(kept, tmp_path, relation, ours, theirs) == expected


def test_cp12_parts_that_are_not_those_of_the_whole_differ(tmp_path: Path) -> None:
    """Two parts of the right sizes: 48 and 80 elements, one of them another tensor's."""

    kept = artifact(tmp_path)
    calls: dict[int, CallFacts] = {
        call.record_id: call
        for call in calls_of(kept / "calls.parquet", [Wanted("baseline", 0, n, "") for n in (WHOLE, PART_A, PART_B)])
        if call.side == "baseline"
    }
    whole, a, b = (calls[n].slots[1] for n in (WHOLE, PART_A, PART_B))
    other = replace(b, xor=("00000001",), elements="0" * 16)
    for relation in (Relation.XOR_PARTITION, Relation.ELEMENTS_PARTITION):
        assert compare_partition(relation, whole, [a, other]).agreement == "different"
        assert compare_partition(relation, whole, [a, replace(b, xor=None, elements=None)]).why == "not_captured"


# --- template ---------------------------------------------------------------------------------------------------------


def test_cp14_a_template_lists_what_is_undetermined_and_can_be_filled_in(kept: Path, tmp_path: Path) -> None:
    made = template(CallsTable(kept / "calls.parquet"), artifact_sha256=digest_of(kept))
    document = json.loads(made.document)
    named = {(one["rank"], one["baseline"], one["candidate"]) for one in document["pairs"]}
    assert named == {
        (rank, *ids) for rank in (0, 1) for ids in [(F[0], "--"), (F[1], "--"), *(("--", n) for n in (REST, *THEIR_F))]
    }
    assert made.left_out == 0
    about = next(one["about"] for one in document["pairs"] if one["baseline"] == F[0])
    assert "undetermined of the same key in the candidate: 10, 12, 14" in about
    told = refused(kept, tmp_path, **document)
    assert len(told) == 1 + len(document["pairs"])  # nobody is named, and no entry has a reason
    document |= {"reviewer": "Ada", "reason": "cannot be told apart"}
    document["pairs"][0] |= {"decision": "replace", "candidate": THEIR_F[0]}
    document["pairs"] = [
        one for one in document["pairs"] if (one["rank"], one["baseline"], one["candidate"]) != (0, "--", THEIR_F[0])
    ]
    found = applied(kept, tmp_path, **document)
    assert found.counts.paired == open_result(kept, files=LOCAL).comparison.counts.paired + 1
    is_consistent(tmp_path / "out", found)


def test_cp14_a_template_is_bounded(kept: Path) -> None:
    made = template(CallsTable(kept / "calls.parquet"), artifact_sha256=digest_of(kept), most=3)
    assert len(json.loads(made.document)["pairs"]) == 3
    assert made.left_out == 9
