"""The planted-fault suite holds what it says: every edit applies, every expected line exists (CP-18)."""

from pathlib import Path

import pytest

from benchmarks.faults.case import Control, Fault, Launch
from benchmarks.faults.checkouts import edited, sources_of, write_checkout
from benchmarks.faults.controls import CONTROLS
from benchmarks.faults.faults import FAULTS
from benchmarks.faults.generated import generated_controls, generated_faults
from benchmarks.faults.judging import Sources
from benchmarks.faults.ranked_controls import RANKED_CONTROLS
from benchmarks.faults.ranked_faults import RANKED_FAULTS
from benchmarks.faults.score import texts

CASES: tuple[Fault | Control, ...] = (*FAULTS, *CONTROLS, *RANKED_FAULTS, *RANKED_CONTROLS)


def test_there_are_enough_of_both_and_names_are_unique() -> None:
    assert len(FAULTS) >= 20
    assert len(CONTROLS) >= 12
    assert len(RANKED_FAULTS) >= 10
    assert len(RANKED_CONTROLS) >= 6
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_both_sides_are_valid_programs_with_the_expected_lines(case: Fault | Control, tmp_path: Path) -> None:
    sides = []
    for name, variant in (("baseline", case.baseline), ("candidate", case.candidate)):
        without_weights = variant.__class__(**{**vars(variant), "weights": ()})
        script = write_checkout(without_weights, directory=tmp_path / name)
        for path in script.parent.glob("*.py"):
            compile(path.read_text(encoding="utf-8"), str(path), "exec")
        sides.append(texts(script.parent))
    sources = Sources(baseline=sides[0], candidate=sides[1])
    for expected in case.expected if isinstance(case, Fault) else ():
        assert not expected.at or len(sources.lines_with(expected.file, expected.at)) in (1, 2)


def test_only_pairs_of_two_ranks_are_launched_and_say_for_which_ranks_they_hold() -> None:
    for case in RANKED_FAULTS + RANKED_CONTROLS:
        assert Launch.PROCESS not in (case.baseline.launch, case.candidate.launch)
    for fault in RANKED_FAULTS:
        assert all(expected.ranks for expected in fault.expected)
    for single in FAULTS + CONTROLS:
        assert single.candidate.launch is Launch.PROCESS


@pytest.mark.parametrize("fault", [*FAULTS, *RANKED_FAULTS], ids=lambda fault: fault.name)
def test_a_fault_changes_few_lines_or_one_weight(fault: Fault) -> None:
    changed = 0
    for source in sources_of(fault.candidate.launch):
        text = source.read_text(encoding="utf-8")
        after = edited(text, file=source.name, edits=fault.candidate.edits)
        changed += len(set(after.splitlines()) - set(text.splitlines()))
    assert changed in (1, 2) or (changed == 0 and fault.candidate.weights)


def test_generated_pairs_are_reproducible_programs(tmp_path: Path) -> None:
    cases: list[Fault | Control] = [*generated_faults(40, seed=3), *generated_controls(40, seed=3)]
    assert cases[:40] == list(generated_faults(40, seed=3))
    for number, case in enumerate(cases):
        script = write_checkout(case.candidate, directory=tmp_path / str(number))
        compile(script.with_name("model.py").read_text(encoding="utf-8"), "model.py", "exec")


def test_an_edit_that_does_not_apply_is_an_error() -> None:
    edit = FAULTS[4].candidate.edits[0]
    with pytest.raises(ValueError, match="0 places instead of 1"):
        edited("nothing of it here\n", file=edit.file, edits=(edit,))
