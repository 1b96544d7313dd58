"""Training scripts of every shape behave the same under capture: output, losses, exit status (CA-14, CA-18, P6).

The scripts print their numbers exactly (`float.hex`), so equal output is equal bits.
"""

import re
from pathlib import Path

import pytest

from tests.cases.captures import Ended, run_bare, run_captured, run_python

SHAPES = Path(__file__).parent / "shapes"
SCRIPTS = sorted(path.stem for path in SHAPES.glob("*.py"))
# Scripts that show most of what a capture touches: every level by itself as well.
EACH_LEVEL = ("trainer_like", "structured_outputs", "custom_function", "checkpointing", "odd_dtypes", "optimizers")
# Scripts for which it matters how a process begins or ends: an interpreter of its own runs them.
COLD = frozenset(
    {
        "environment_first",
        "exit_handlers",
        "hard_exit",
        "killed",
        "multiprocessing_spawn",
        "no_torch",
        "reexec",
        "threads",
    }
)
LEVELS = (("digest",), ("module",), ("op",), ("module", "op"))


def assert_same(captured: Ended, bare: Ended) -> None:
    assert captured.stdout == bare.stdout, captured.stderr
    assert captured.status == bare.status, captured.stderr
    assert traceback_of(captured.stderr) == traceback_of(bare.stderr)


def traceback_of(stderr: str) -> list[str]:
    """The last traceback without torch's own frames: with any module hook, ours too, torch calls by another line."""
    start = stderr.rfind("Traceback (most recent call last):")
    kept: list[str] = []
    inside_torch = False
    for line in stderr[start:].splitlines() if start >= 0 else []:
        if line.startswith('  File "') or not line.startswith("  "):
            inside_torch = re.match(r'  File ".*/torch/', line) is not None
        if line and not inside_torch and not line.startswith("paritrace"):
            kept.append(line)
    return kept


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_the_script_does_the_same_under_capture(name: str, tmp_path: Path) -> None:
    script = SHAPES / f"{name}.py"
    cold = name in COLD
    assert_same(run_captured(script, tmp_path / "run", cold=cold), run_bare(script, cold=cold))


@pytest.mark.slow
@pytest.mark.parametrize("name", EACH_LEVEL)
def test_the_script_does_the_same_at_every_level(name: str, tmp_path: Path) -> None:
    script = SHAPES / f"{name}.py"
    bare = run_bare(script)
    for levels in LEVELS:
        assert_same(run_captured(script, tmp_path / "-".join(levels), levels=levels), bare)


@pytest.mark.slow
@pytest.mark.parametrize("steps", ["1:2", "2:6"])
def test_a_capture_that_begins_under_a_mode_of_the_workload_leaves_that_mode_alone(steps: str, tmp_path: Path) -> None:
    script = SHAPES / "dispatch_modes.py"
    assert_same(run_captured(script, tmp_path / "run", levels=("op",), steps=steps), run_bare(script))


@pytest.mark.slow
def test_a_package_does_the_same_under_capture(tmp_path: Path) -> None:
    bare = run_python("-m", "package_main", "a", "--b", directory=SHAPES)
    command = ("-m", "paritrace", "run", "-o", str(tmp_path / "run"), "--level", "op", "-m", "package_main", "a", "--b")
    assert_same(run_python(*command, directory=SHAPES), bare)
    assert bare.status == 0
