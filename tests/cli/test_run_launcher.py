"""`paritrace run --launcher`: each rank runs under `paritrace run` with the same options and its own words (CA-1)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from paritrace.runs.reading import open_run

DEADLINE_SECONDS = 120
# Stands in for mpirun: runs what stands behind its own options twice, as two ranks of one job, one after the other.
MPIRUN = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift 2; done
for rank in 0 1; do
    OMPI_COMM_WORLD_RANK=$rank OMPI_COMM_WORLD_SIZE=2 PMIX_NAMESPACE=job-1 "$@" || status=$?
done
exit ${status:-0}
"""
TOLD = """
import os, sys
print(os.environ["OMPI_COMM_WORLD_RANK"], sys.argv, flush=True)
sys.exit("fail" in sys.argv and 9)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "mpirun").write_text(MPIRUN)
    (tmp_path / "bin" / "mpirun").chmod(0o755)
    (tmp_path / "train.py").write_text(TOLD)
    return tmp_path


def launched(folder: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", **environ}
    command = [sys.executable, "-m", "paritrace", "run", *arguments]
    return subprocess.run(
        command, cwd=folder, env=variables, capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False
    )


def test_all_ranks_join_one_run_and_every_word_arrives(folder: Path) -> None:
    hostile = ("--level", "a b", "$HOME", "'; exit 3", "--", "-o", "")
    options = ("-o", "A run", "--title", "two -words=", "--tag", "x", "--tag", "y y", "--no-diff", "--steps", "0:1")
    done = launched(folder, *options, "--launcher", "mpirun -np 2", "train.py", *hostile)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{rank} {['train.py', *hostile]}" for rank in (0, 1)]
    with open_run(folder / "A run") as run:
        assert [(view.rank, view.row.world_size) for view in run.sessions] == [(0, 2), (1, 2)]
        assert (run.envelope.title, run.envelope.tags) == ("two -words=", ("x", "y y"))
        assert run.envelope.metadata["expected_steps"] == "0:1"


def test_the_status_is_the_launchers_and_a_variable_does_not_launch_again_in_each_rank(folder: Path) -> None:
    done = launched(folder, "-o", "A", "train.py", "fail", PARITRACE_RUN_LAUNCHER="mpirun -np 2")
    assert done.returncode == 9, done.stderr
    assert done.stdout.splitlines() == [f"{rank} ['train.py', 'fail']" for rank in (0, 1)]


def test_a_module_and_no_capture(folder: Path) -> None:
    (folder / "odd name.py").write_text(TOLD)
    captured = launched(folder, "-o", "A", "--launcher", "mpirun -np 2", "-m", "train", "x")
    assert captured.stdout.splitlines() == [f"{rank} ['{folder / 'train.py'}', 'x']" for rank in (0, 1)]
    bare = launched(folder, "--launcher", "mpirun -np 2", "odd name.py", PARITRACE_MODE="off")
    assert bare.stdout.splitlines() == [f"{rank} ['odd name.py']" for rank in (0, 1)]
    assert not (folder / "B").exists()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("-o", "A", "--launcher", "mpirun 'x", "train.py"), "bad_launcher"),
        (("-o", "A", "--launcher", "mpirun -np 2 train.py", "train.py"), "bad_launcher"),
        (("-o", "A", "--launcher", "srun-not-there", "train.py"), "bad_launcher"),
        (("-o", "A", "--launcher", "/nowhere/mpirun", "train.py"), "no_launcher"),
        (("--launcher", "mpirun -np 2", "train.py"), "no_output"),
        (("-o", "A", "--launcher", "mpirun -np 2", "--regions", "99", "train.py"), "bad_regions"),
        (("-o", "A", "--launcher", "mpirun -np 2", "missing.py"), "no_script"),
    ],
)
def test_what_is_refused_is_refused_before_a_rank_begins(folder: Path, arguments: tuple[str, ...], code: str) -> None:
    done = launched(folder, *arguments)
    assert (done.returncode, done.stdout) == (125, "")
    assert f"[{code}]" in done.stderr
    assert "fix: " in done.stderr
    assert not (folder / "A").exists()


def test_deepspeeds_argument_comes_first(folder: Path) -> None:
    done = launched(
        folder, "-o", "A", "--local-rank-argument", "train.py", "x", LOCAL_RANK="1", OMPI_COMM_WORLD_RANK="0",
        OMPI_COMM_WORLD_SIZE="1",
    )  # fmt: skip
    assert done.stdout == "0 ['train.py', '--local_rank=1', 'x']\n", done.stderr
