"""The measurements say what was measured: in turn, as ratios, a missed goal as missed."""

import importlib
import platform

import pytest

from benchmarks import run
from benchmarks.measuring import Row, in_turn


def test_things_are_taken_in_turn_after_one_run_to_warm_up() -> None:
    order: list[str] = []
    costs = in_turn({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, calls=2, runs=3)
    assert order == ["a", "a", "b", "b"] * 4
    assert set(costs) == {"a", "b"}
    assert all(cost.cpu >= 0 and cost.wall > 0 for cost in costs.values())


def test_more_work_costs_more() -> None:
    costs = in_turn({"much": lambda: sum(range(200_000)), "little": lambda: sum(range(200))}, runs=5)
    assert costs["much"].cpu > 10 * costs["little"].cpu


@pytest.mark.parametrize(
    ("row", "end"),
    [
        (Row("x", 1.0, "bare", ("<=", 1.01)), "| <= 1.01 | met |"),
        (Row("x", 1.02, "bare", ("<=", 1.01)), "| <= 1.01 | **missed** |"),
        (Row("x", 0.9, "a read", (">=", 0.9)), "| >= 0.9 | met |"),
        (Row("x", 0.8, "a read", (">=", 0.9)), "| >= 0.9 | **missed** |"),
        (Row("x", 5.0, "a read"), "| 5.000 | a read | | |"),
    ],
)
def test_a_missed_goal_is_shown(row: Row, end: str) -> None:
    assert row.text().endswith(end)


def test_every_script_of_a_figure_is_run() -> None:
    scripts = run.scripts()
    assert {"pf01_fingerprint", "pf02_summary", "pf03_capture", "pf04_observation", "pf05_writer"} <= set(scripts)
    for script in scripts:
        assert callable(importlib.import_module(f"benchmarks.{script}").main)


def test_the_machine_is_described_without_its_name() -> None:
    described = run.machine()
    assert platform.python_version() in described
    assert platform.node() not in described.replace(",", " ").replace(";", " ").split()


def section(number: int, told: str) -> str:
    return f"## PF-{number}: {told}\n\nA table.\n\n`python -m benchmarks.pf{number:02}_x`, 3 s\n"


def test_what_is_measured_anew_takes_its_place_and_says_where() -> None:
    results = "\n".join(["# Measurements\n", "Measured on a day: all\n", section(1, "old"), section(19, "old")])
    once = run.renewed(results, {"pf19_x": section(19, "new"), "pf06_x": section(6, "new")}, "another day: some\n")
    assert [line for line in once.splitlines() if line.startswith(("##", "Measured"))] == [
        "Measured on a day: all",
        "Measured anew, pf06_x, pf19_x: another day: some",
        "## PF-1: old",
        "## PF-6: new",
        "## PF-19: new",
    ]
    again = run.renewed(once, {"pf06_x": section(6, "newest")}, "a third day: one\n")
    assert [line for line in again.splitlines() if line.startswith("Measured anew")] == [
        "Measured anew, pf19_x: another day: some",
        "Measured anew, pf06_x: a third day: one",
    ]
    assert "\n\n\n" not in again
