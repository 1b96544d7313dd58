"""The planted-fault suite on real captures and comparisons (CP-18): three pairs always, all of them among the slow."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# A fault by its line, a fault outside every call, and a control: what the product is for.
ALWAYS = ("softmax-bfloat16", "weight-element", "no-op")


def score(*arguments: str) -> tuple[int, dict[str, dict[str, object]]]:
    """Exit status of the scorer and its scores by name."""
    command = [sys.executable, "-m", "benchmarks.faults.score", "--json", *arguments]
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=3000, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, {row["name"]: row for row in json.loads(done.stdout)["scores"]}


def test_three_pairs_are_answered_right() -> None:
    status, scores = score(*(word for name in ALWAYS for word in ("--only", name)))
    assert {name: row["answer"] for name, row in scores.items()} == {
        "softmax-bfloat16": "exact",
        "weight-element": "exact",
        "no-op": "silent",
    }
    assert status == 0


@pytest.mark.slow
def test_every_fault_is_answered_and_no_control_is_claimed() -> None:
    status, scores = score()
    assert {name: row["said"] for name, row in scores.items() if not row["good"]} == {}
    assert status == 0
    faults = [row for row in scores.values() if row["kind"] == "fault"]
    named = [row for row in faults if row["answer"] in ("exact", "adjacent")]
    assert len(named) >= 0.95 * len(faults)


@pytest.mark.slow
def test_a_pair_with_an_unknown_name_is_an_error() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.faults.score", "--only", "nothing"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    assert "unknown: nothing" in done.stderr
