"""Which steps a round of narrowing compares, and under which names (CP-15, CP-6)."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from paritrace.automation.narrow_comparing import Runs, compared
from paritrace.automation.narrow_folder import Folder
from paritrace.automation.narrow_records import Asked, Plan, Question
from paritrace.automation.narrow_sides import AskedSide
from paritrace.automation.narrow_task import BASELINE, CANDIDATE, Narrowing
from paritrace.testing.tables import RunTable
from tests.automation.narrowings import ASKED
from tests.automation.requests import request_for
from tests.compare.runs import numbers, training


def narrowing(tmp_path: Path, asked: Asked) -> Narrowing:
    script = tmp_path / "train.py"
    script.write_text("")
    sides = [
        AskedSide(name, tmp_path / name, tmp_path / name, request_for(script), "a" * 64)
        for name in (BASELINE, CANDIDATE)
    ]
    return Narrowing(sides[0], sides[1], asked, Folder(tmp_path / "rounds"), made_by="test")


@pytest.mark.parametrize(
    ("plan", "steps"),
    [
        (Plan(Question.STEP), (11, 12, 13)),
        (Plan(Question.MODULES, 12), (12, 13)),  # the begin of the next step shows what a step wrote
    ],
)
def test_cp15_only_the_steps_that_are_asked_for_are_looked_through(
    tmp_path: Path, plan: Plan, steps: tuple[int, ...]
) -> None:
    runs = Runs(training(steps=16).write(tmp_path / BASELINE), training(steps=16).write(tmp_path / CANDIDATE))
    task = narrowing(tmp_path, replace(ASKED, between=(11, 14)))
    assert compared(task, plan, runs, tmp_path / "comparison").steps_compared == steps


@pytest.mark.parametrize("compiler", [False, True])
def test_cp15_a_compiled_model_is_read_as_the_model_that_it_wraps(tmp_path: Path, *, compiler: bool) -> None:
    written: list[Path] = []
    for name, prefix, gradient in ((BASELINE, "", 1), (CANDIDATE, "_orig_mod.", 2)):
        table = RunTable()
        table.state("parameter", {f"{prefix}fc.weight": numbers(1)})
        table.state("gradient", {f"{prefix}fc.weight": numbers(gradient)}, moment="grads")
        table.end_step()
        written.append(table.write(tmp_path / name))
    task = narrowing(tmp_path, replace(ASKED, compiler=compiler))
    found = compared(task, Plan(Question.STEP), Runs(written[0], written[1]), tmp_path / "comparison")
    assert (found.first_difference is not None) is compiler
