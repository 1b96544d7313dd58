"""A capture in a forked child equals one that the ordinary command makes, bit for bit (CP-18)."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.faults.checkouts import PLACED_WORKLOAD
from paritrace.compare.checks import check
from paritrace.compare.engine import compare
from paritrace.runs.reading import open_run

ROOT = Path(__file__).parents[2]
OPTIONS = ("--level", "module", "--level", "op", "--steps", "0:2")
FORKED = """
import sys
from pathlib import Path
from benchmarks.faults.warm import CaptureFailedError, capture, warm_up
warm_up()
script, place = Path(sys.argv[1]), Path(sys.argv[2])
run = ("run", "-o", str(place / "forked"), *sys.argv[3:], str(script))
capture(run, directory=script.parent, errors=place / "errors")
try:
    capture(run, directory=script.parent, errors=place / "errors")  # the run directory is taken
except CaptureFailedError as error:
    print(error)
"""


@pytest.mark.slow
def test_a_forked_capture_is_an_ordinary_one(tmp_path: Path) -> None:
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    script = str(shutil.copytree(PLACED_WORKLOAD, tmp_path / "work") / "train.py")

    def python(*arguments: str) -> str:
        command = [sys.executable, *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=True)
        return done.stdout

    python("-m", "paritrace", "run", "-o", str(tmp_path / "ordinary"), *OPTIONS, script)
    refused = python("-c", FORKED, script, str(tmp_path), *OPTIONS)
    assert "ended with [125]" in refused
    with open_run(tmp_path / "ordinary") as ordinary, open_run(tmp_path / "forked") as forked:
        result = compare(ordinary, forked).result
        assert result.counts.calls_baseline == result.counts.calls_candidate == result.counts.ok > 2000
        assert result.findings == ()
        assert result.outside == ()
        assert [change for change in result.changed if change.kind not in ("environment", "argv")] == [], result.changed
        assert [view.receipt is not None for view in forked.sessions] == [True]
        outcomes = [[(found.id, found.status) for found in check(run).invariants] for run in (ordinary, forked)]
        assert outcomes[0] == outcomes[1]
