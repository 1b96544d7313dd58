"""The full suite: rates, tallies, judgement behind a kernel change, captures in forked children, resuming (CP-18)."""

import json
import random
import re
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from benchmarks import warm
from benchmarks.faults.case import Answer, Control, Expected, Fault, Variant
from benchmarks.faults.full import rows_of
from benchmarks.faults.full_judging import claims_beyond, judge_masked
from benchmarks.faults.full_table import tables
from benchmarks.faults.intervals import rate
from benchmarks.faults.placed_controls import renamed_function
from benchmarks.faults.tally import BROKEN, result_of
from paritrace.compare.result import Comparison, Difference, Finding, Group
from tests.faults.test_judging import SOURCES, difference, result

ROOT = Path(__file__).parents[2]
JUDGED = Fault(
    name="x",
    mechanism="",
    candidate=Variant(),
    expected=(Expected(groups=("exceeds",), module="blocks.1.attention", phase="forward", step=1),),
)


def finding(place: Difference) -> Finding:
    return Finding(id="F1", sentence="", strength="", place=place)


def judged(**changes: object) -> Comparison:
    place = difference(**{"module": "blocks.1.attention", "step": 1, "group": Group.EXCEEDS, **changes})
    return replace(result(place), findings=(finding(place),))


@pytest.mark.parametrize(
    ("changes", "answer"),
    [
        ({}, Answer.EXACT),
        ({"module": "blocks.1.attention.query"}, Answer.EXACT),
        ({"module": "blocks.1"}, Answer.ADJACENT),
        ({"module": "blocks.1.mlp"}, Answer.ADJACENT),
        ({"module": "blocks.2.attention"}, Answer.MISSED),
        ({"module": ""}, Answer.MISSED),
        ({"step": 0}, Answer.MISSED),
        ({"phase": "backward"}, Answer.MISSED),
        ({"group": Group.ORIGINATES}, Answer.MISSED),
    ],
)
def test_behind_a_kernel_change_the_module_and_the_step_are_judged(changes: dict[str, object], answer: Answer) -> None:
    assert judge_masked(JUDGED, judged(**changes), SOURCES) is answer


def test_the_pass_of_a_micro_batch_is_judged_too() -> None:
    fault = Fault(
        name="x",
        mechanism="",
        candidate=Variant(),
        expected=(Expected(groups=("exceeds",), module="blocks.1.attention", step=1, microbatch=1),),
    )
    assert judge_masked(fault, judged(microbatch=1), SOURCES) is Answer.EXACT
    assert judge_masked(fault, judged(microbatch=0), SOURCES) is Answer.MISSED


def test_the_call_that_reads_a_mistake_outside_every_module_is_beside_it() -> None:
    expected = (Expected(groups=("exceeds",), module="head", phase="backward", step=1, beside=True),)
    fault = Fault(name="x", mechanism="", candidate=Variant(), expected=expected)
    assert judge_masked(fault, judged(module="head", phase="backward"), SOURCES) is Answer.ADJACENT
    assert judge_masked(fault, judged(module="head"), SOURCES) is Answer.MISSED


def test_what_is_said_to_be_inside_round_off_is_passed_over() -> None:
    place = difference(module="blocks.1.attention", step=1, group=Group.EXCEEDS)
    kernel = finding(difference(group=Group.ORIGINATES))
    explained = replace(kernel, strength="inside round-off: error 1e-07, expected 1e-07")
    behind = replace(result(place), findings=(explained, finding(place)))
    assert judge_masked(JUDGED, behind, SOURCES) is Answer.EXACT
    assert judge_masked(JUDGED, replace(behind, findings=(kernel, finding(place))), SOURCES) is Answer.MISSED
    assert judge_masked(JUDGED, replace(behind, findings=(explained,)), SOURCES) is Answer.MISSED


def test_a_control_behind_a_kernel_change_may_differ_but_not_stand_out() -> None:
    control = Control(name="x", mechanism="")
    assert claims_beyond(control, judged(group=Group.ORIGINATES)) == []
    assert claims_beyond(control, judged()) == ["exceeds blocks.1.attention step 1 forward"]


def test_rates_have_the_exact_interval() -> None:
    none = rate(0, total=1000)
    assert (none.found, none.total, none.low) == (0, 1000, 0.0)
    assert none.high == pytest.approx(1 - 0.025 ** (1 / 1000))
    assert rate(5, total=10).low == pytest.approx(0.1871, abs=1e-4)
    assert rate(0, total=0) == (0, 0, 0.0, 1.0)


def row(number: int, **changes: object) -> dict[str, object]:
    return {
        "id": f"keys-scaled/{number:02}",
        "kind": "fault",
        "name": "keys-scaled",
        "mode": "masked",
        "placement": [],
        "answer": "exact",
        "said": "",
        "undetermined": 2,
        "calls": 1000,
        "seconds": 0.5,
        "captured": 1.0,
        "commit": "c",
        **changes,
    }


def test_rows_become_counts_and_rates_and_what_is_below_round_off_is_no_miss() -> None:
    control = row(
        9, id="no-op/1", kind="control", name="no-op", mode="", answer="false claim", check="silent", check_said=""
    )
    rows = [row(1), row(1, answer="missed"), row(2, answer="adjacent"), row(3, answer="below round-off"), control]
    found = result_of(rows, mechanisms={"keys-scaled": "k", "unseen": "u"})
    assert found["mechanisms"][0]["masked"] == {"adjacent": 1, "missed": 1, "below round-off": 1}
    assert found["mechanisms"][1] == {"name": "unseen", "planted": "u"}
    assert found["rates"]["masked: exact or adjacent"][:2] == [1, 2]
    assert found["rates"]["controls: false claims of compare"][:2] == [1, 1]
    assert [one["id"] for one in found["missed"]] == ["keys-scaled/01"]
    assert [one["id"] for one in found["claimed"]] == ["no-op/1"]
    text = tables({**found, "command": "C", "torch": "T", "num_pairs": 9})
    assert "Scored: 4 of 9 pairs; the others were not run" in text
    assert "| keys-scaled | k | masked |  | 1 |  | 1 | 1 |" in text
    assert "| no-op | 1 | 1 | 0 |" in text


def test_a_pair_whose_workload_failed_is_listed_and_in_no_figure() -> None:
    broken = {"id": "no-op/2", "kind": BROKEN, "said": "NameError", "commit": "c"}
    found = result_of([row(1), broken], mechanisms={"keys-scaled": "k"})
    assert found["broken"] == [{"id": "no-op/2", "said": "NameError"}]
    assert found["num_scored"] == 1
    assert found["rates"]["controls: false claims of compare"][:2] == [0, 0]


def test_a_renamed_function_is_renamed_where_it_is_imported() -> None:
    for seed in range(40):
        _, edits = renamed_function(random.Random(seed))
        texts = {one.file: one.new for one in edits}
        new = next(name for name in re.findall(r"(\w+)\(", texts["model.py"]) if re.fullmatch(r"\w+_[a-f]", name))
        assert ("train.py" in texts) == new.startswith("widened")
        assert "train.py" not in texts or f"import Decoder, Now, {new}" in texts["train.py"]


def test_a_row_that_was_cut_off_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    path.write_text('{"id": "a"}\n{"id": "b"}\n{"id"', encoding="utf-8")
    assert [one["id"] for one in rows_of(path)] == ["a", "b"]
    assert rows_of(tmp_path / "none") == []


def full(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    files = ("--out", str(place / "rows"), "--runs", str(place / "runs"))
    return subprocess.run(
        [warm.python(), "-m", "benchmarks.faults.full", *files, *arguments],
        cwd=ROOT,
        env=warm.environment(),
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


@pytest.mark.slow
def test_a_small_part_of_the_suite_is_answered_right_and_resumed(tmp_path: Path) -> None:
    """A mistake plain, and behind a kernel change with its envelope, and a control; then the comparisons once more."""
    chosen = ("--only", "keys-scaled/00/", "--only", "identical/0016", "--ranked", "0", "--resume")
    result_file = tmp_path / "result.json"
    done = full(tmp_path, *chosen, "--result", str(result_file))
    assert done.returncode == 0, done.stderr
    rows = rows_of(tmp_path / "rows")
    assert [(row["answer"], row["check"]) for row in rows if row["kind"] == "control"] == [("silent", "silent")]
    faults = {row["mode"]: row["answer"] for row in rows if row["kind"] == "fault"}
    assert set(faults) == {"plain", "masked"}
    assert faults["plain"] == "exact"
    assert faults["masked"] in {"exact", "adjacent", "below round-off"}
    assert json.loads(result_file.read_text("utf-8"))["rates"]["plain: exact"][0] >= 1
    again = full(tmp_path, *chosen)
    assert "0 pairs done, 0 left" in again.stderr
    without_rows = [word for word in chosen if word != "--resume"]
    once_more = full(tmp_path, *without_rows, "--compare-only")
    assert once_more.returncode == 0, once_more.stderr
    twice = rows_of(tmp_path / "rows")
    assert [(row["id"], row["answer"]) for row in twice] == 2 * [(row["id"], row["answer"]) for row in rows]
