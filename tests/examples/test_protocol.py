"""The example of the protocol: a planted fault found under torchrun, by JSON requests alone (AU-3 to AU-8)."""

import json
import subprocess
from pathlib import Path

import pytest

from benchmarks import warm

EXAMPLE = Path(__file__).parents[2] / "examples" / "protocol"
DEADLINE_SECONDS = 900
pytestmark = pytest.mark.slow


def test_au7_the_first_difference_of_two_ranks_is_the_planted_one(tmp_path: Path) -> None:
    source = (EXAMPLE / "train.py").read_bytes()
    folder = tmp_path / "out"
    done = subprocess.run(
        [warm.python(), str(EXAMPLE / "drive.py"), str(folder), "--ranks", "2"],
        env=warm.environment(),
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads((folder / "compare.json").read_bytes())["result"]
    place = 1 + source.decode().splitlines().index(
        "        gradients = clip(reduced(torch.autograd.grad(loss, parameters), world_size))"
    )
    first = [(one["rank"], one["step"], one["function"], one["line"]) for one in result["first_differences"]]
    assert first == [(rank, 0, "__main__.clipped", place) for rank in (0, 1)]
    assert (result["ranks"], result["verdict"]) == ([0, 1], "not_evaluated")
    aligned = json.loads((folder / "align.json").read_bytes())["result"]
    assert aligned["source_sha256"] == result["comparison"]["sha256"]
    assert aligned["counts"]["paired"] > result["counts"]["paired"]
    assert (EXAMPLE / "train.py").read_bytes() == source
    assert sorted(path.name for path in EXAMPLE.iterdir() if path.name != "__pycache__") == [
        "README.md",
        "drive.py",
        "train.py",
    ]
