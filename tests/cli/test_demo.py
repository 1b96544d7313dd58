"""`paritrace demo` (SU-6): a real pair of trainings, one planted mistake, found and shown."""

import json
import subprocess
import sys
from importlib.resources import files as package_files
from pathlib import Path

import pytest

from benchmarks import warm
from paritrace.cli.demo import RIGHT, TRAINING, WRONG, new_place, with_mistake, write_side
from paritrace.errors import Outcome, RequestError
from paritrace.files import LOCAL
from tests.reports.html.pages import assert_whole

TEXT = package_files("paritrace.cli").joinpath(TRAINING).read_text(encoding="utf-8")
PLANTED_LINE = TEXT[: TEXT.index(RIGHT)].count("\n") + 1


def test_the_two_trainings_differ_in_one_line() -> None:
    pairs = list(zip(TEXT.splitlines(), with_mistake(TEXT).splitlines(), strict=True))
    assert [pair for pair in pairs if pair[0] != pair[1]] == [(RIGHT.rstrip("\n"), WRONG.rstrip("\n"))]


def test_both_trainings_compile(tmp_path: Path) -> None:
    for name, text in (("baseline", TEXT), ("candidate", with_mistake(TEXT))):
        side = write_side(name, text, place=tmp_path, files=LOCAL)
        compile(side.script.read_text(encoding="utf-8"), str(side.script), "exec")


def test_a_directory_in_use_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(RequestError) as refused:
        new_place(tmp_path, files=LOCAL)
    assert refused.value.outcome is Outcome.REFUSED
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_without_torch_the_pip_command_is_named(tmp_path: Path) -> None:
    code = "import sys; sys.modules['torch'] = None; from paritrace.cli.entry import main; main(['demo'])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert "pip install 'paritrace[torch]'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_the_planted_line_is_the_first_difference(tmp_path: Path) -> None:
    environment = warm.environment(PARITRACE_MODE="off")  # a user's setting must not matter
    done = subprocess.run(
        [warm.python(), "-m", "paritrace", "demo", "--keep", str(tmp_path / "demo")],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first = next(line for line in done.stdout.splitlines() if "first difference:" in line)
    assert f":{PLANTED_LINE}" in first
    assert "step 0" in first
    (document,) = (tmp_path / "demo" / "candidate" / "run" / "comparisons").glob("**/comparison.json")
    result = json.loads(document.read_text(encoding="utf-8"))
    counts = result["counts"]
    assert counts["undetermined_candidate"] > 0
    assert counts["paired"] > 100 * counts["undetermined_candidate"]
    assert result["first_difference"]["module"] == "blocks.0.attention"
    assert result["ranks_compared"] == [0, 1]
    receipts = {path.parent.name for path in (tmp_path / "demo" / "candidate" / "run").glob("sessions/*/receipt.json")}
    assert receipts == {"rank-0"}, "rank 1 was killed; what it wrote until then is compared all the same"
    assert f"report    {tmp_path / 'demo' / 'report.html'}" in done.stdout
    report = assert_whole((tmp_path / "demo" / "report.html").read_text(encoding="utf-8")).text
    assert "k = k.repeat(1, HEADS // GROUPS, 1, 1)" in report
    assert "batch = len(x)" in report, "the lines around come from the run's own copy of the source"
    assert "rank 1 left no receipt" in report
    assert f"results   {tmp_path / 'demo' / 'candidate' / 'run' / 'comparisons'}" in done.stdout
