"""Real processes at once: the ranks of one start all join, and of several starts exactly one wins (EV-13)."""

import subprocess
import sys
from pathlib import Path

import pytest

from paritrace.runs.envelope import SessionStatus
from paritrace.runs.reading import open_run
from paritrace.runs.verify import Finding, verify

ROOT = Path(__file__).parents[2]

RANK = """
import sys
from pathlib import Path
from paritrace.clock import SYSTEM
from tests.runs.making import capture, torchrun
sys.stdin.readline()
capture(Path(sys.argv[1]), environ=torchrun(int(sys.argv[2]), world_size=6), clock=SYSTEM)
"""

RIVAL = """
import sys
from pathlib import Path
from paritrace.errors import EvidenceError
from paritrace.runs.opening import begin_session
from tests.runs.making import request
sys.stdin.readline()
try:
    begin_session(Path(sys.argv[1]), request())
except EvidenceError as error:
    print(error.code)
else:
    print("won")
"""


def at_once(program: str, run_dir: Path, names: list[str]) -> list[str]:
    """Start one process per name, let all go together, return what each printed."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(run_dir), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        for name in names
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    printed = [process.communicate(timeout=120)[0].strip() for process in processes]
    assert [process.returncode for process in processes] == [0] * len(names)
    return printed


@pytest.mark.slow
def test_the_ranks_of_one_start_all_join(tmp_path: Path) -> None:
    at_once(RANK, tmp_path / "run", [str(rank) for rank in range(6)])
    run = open_run(tmp_path / "run")
    assert [view.rank for view in run.sessions] == list(range(6))
    assert {view.status for view in run.sessions} == {SessionStatus.COMPLETED}
    assert verify(run).verdict is Finding.INTACT


@pytest.mark.slow
def test_of_several_starts_one_wins(tmp_path: Path) -> None:
    printed = at_once(RIVAL, tmp_path / "run", [str(number) for number in range(6)])
    assert sorted(printed) == ["run_exists"] * 5 + ["won"]
    assert len(open_run(tmp_path / "run").sessions) == 1
