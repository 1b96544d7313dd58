"""judge, isolate and capsule on real programs: started again, replayed, ended, and not touched (CP-26)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from paritrace.compare.judged_result import Functions, Isolated, Judged, Nearer
from tests.cases.captures import DEADLINE_SECONDS, Ended, compare, run_python, write_script

pytestmark = pytest.mark.slow

TRAINING = """
    import atexit, sys
    from pathlib import Path
    import torch
    from torch import nn

    atexit.register(lambda: Path("saved").open("a").write("end\\n"))
    epsilon, gain, order = float(sys.argv[1]), float(sys.argv[2]), sys.argv[3]

    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.project = nn.Linear(16, 16)

        def forward(self, x, *, scale):
            terms = self.project(x) * scale
            if order == "torch":
                return terms.cumsum(-1)
            parts, total = [], torch.zeros_like(terms[..., 0])
            for part in reversed(terms.flip(-1).unbind(-1)):
                total = total + part
                parts.append(total)
            return torch.stack(parts, -1) * gain

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.norm = nn.Linear(8, 16), nn.LayerNorm(16, eps=epsilon)
            self.mixed, self.drop, self.last = Mixed(), nn.Dropout(0.2), nn.Linear(16, 2)

        def forward(self, x):
            return self.last(self.drop(self.mixed(self.norm(self.first(x)), scale=0.5)))

    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step in range(3):
        model(torch.randn(32, 8)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    Path("saved").open("a").write("trained\\n")
"""
VARIANTS = {
    "base": ("1e-5", "1", "loop"),
    "both": ("1e-3", "1.01", "loop"),  # two mistakes, one after the other
    "rounding": ("1e-5", "1", "torch"),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program and its captured variants, compared with the first."""
    folder = tmp_path_factory.mktemp("judging")
    write_script(folder / "train.py", TRAINING)
    for name, arguments in VARIANTS.items():
        done = paritrace(folder, "run", "-o", name, "--steps", "0:1", "train.py", *arguments)
        assert done.status == 0, done.stderr
    for name in ("both", "rounding"):
        compare(folder / "base", folder / name)
    return folder


def paritrace(folder: Path, *arguments: str) -> Ended:
    return run_python("-m", "paritrace", *arguments, directory=folder)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file but those of results below a candidate, which is where ours go."""
    files = (path for path in folder.rglob("*") if path.is_file() and "comparisons" not in path.parts)
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_cp26_judge_says_that_a_wrong_epsilon_is_another_function_and_touches_nothing(place: Path) -> None:
    before = contents(place)
    done = paritrace(place, "judge", "both", "F1", "--json")
    assert done.status == 0, done.stderr
    judged = msgspec.json.decode(done.stdout, type=Judged)
    assert judged.call.module_candidate == "norm"
    assert judged.call.functions is Functions.DIFFERENT
    assert judged.call.reproduces
    assert judged.call.remarks == ()  # all arguments, weights and gradients are the recorded ones
    assert {tensor.path for tensor in judged.call.tensors if tensor.gradient} == {"args[0]", "weight", "bias"}
    assert contents(place) == before  # the program ended at the call: it saved nothing, its exit handler neither
    assert json.loads(next(place.glob("both/comparisons/*/*/judged/F1.json")).read_text()) == json.loads(done.stdout)


def test_cp26_judge_tells_round_off_from_a_mistake(place: Path) -> None:
    done = paritrace(place, "judge", "rounding", "F1", "--json")
    assert done.status == 0, done.stderr
    judged = msgspec.json.decode(done.stdout, type=Judged)
    assert judged.call.module_candidate == "mixed"
    assert judged.call.functions is Functions.SAME
    assert judged.call.nearer in (Nearer.NEITHER, Nearer.BASELINE, Nearer.CANDIDATE)


def test_cp26_isolate_separates_two_mistakes_though_one_feeds_the_other(place: Path) -> None:
    before = contents(place)
    done = paritrace(place, "isolate", "base", "both", "--json")
    assert done.status == 0, done.stderr
    isolated = msgspec.json.decode(done.stdout, type=Isolated)
    assert [isolated.calls[found].module_baseline for found in isolated.apart] == ["norm", "mixed"]
    by_module = {call.module_baseline: call.functions for call in isolated.calls}
    assert {name for name, found in by_module.items() if found is Functions.EQUAL} == {
        "first",
        "mixed.project",
        "drop",
        "last",
    }
    assert isolated.left_out == {}
    assert contents(place) == before


def test_cp26_a_capsule_runs_by_itself_from_a_read_only_folder(place: Path, tmp_path: Path) -> None:
    """And ends with 1 where its program is changed; a file of tensors that was changed is refused."""
    before = contents(place)
    folder = tmp_path / "capsule"
    done = paritrace(place, "capsule", "both", "F1", "-o", str(folder))
    assert done.status == 0, done.stderr
    assert contents(place) == before
    for path in (*folder.iterdir(), folder):
        path.chmod(path.stat().st_mode & ~0o222)
    ran = alone(folder / "run.py", tmp_path)
    assert ran.status == 0, ran.stdout + ran.stderr
    assert ran.stdout.count("the recorded bits") == 2
    assert paritrace(place, "capsule", "both", "F1", "-o", str(folder)).status == 2  # and is not overwritten
    for path in (folder, *folder.iterdir()):
        path.chmod(path.stat().st_mode | 0o200)
    text = (folder / "run.py").read_text()
    assert "1e-05" in text
    (folder / "run.py").write_text(text.replace("1e-05", "2e-05"))
    ran = alone(folder / "run.py", tmp_path)
    assert ran.status == 1, ran.stderr
    assert "ULP from what was recorded" in ran.stdout
    changed = (folder / "baseline-rank0.safetensors").read_bytes()
    (folder / "baseline-rank0.safetensors").write_bytes(changed[:-1] + bytes([changed[-1] ^ 1]))
    assert "is not the file" in alone(folder / "run.py", tmp_path).stderr


def alone(script: Path, folder: Path) -> Ended:
    """Run a capsule where nothing of paritrace can be imported."""
    blocked = folder / "blocked.py"
    blocked.write_text(
        "import sys, runpy\n"
        "class Blocked:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('paritrace', 'msgspec', 'xxhash', 'train'):\n"
        "            raise ImportError(name)\n"
        "sys.meta_path.insert(0, Blocked())\n"
        "sys.argv = sys.argv[1:]\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    environment = {"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-I", "-B", str(blocked), str(script)]
    done = subprocess.run(
        command, cwd="/", env=environment, capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False
    )
    return Ended(status=done.returncode, stdout=done.stdout, stderr=done.stderr)


def test_cp26_a_module_that_the_candidate_never_calls_is_told_with_what_it_calls(place: Path) -> None:
    done = paritrace(place, "isolate", "base", "both", "--modules", "norm", "--module", "norm=other", "--json")
    assert done.status == 0, done.stderr
    isolated = msgspec.json.decode(done.stdout, type=Isolated)
    (why,) = isolated.left_out.values()
    assert "other was not called" in why
    assert "mixed.project" in why


def test_cp26_a_program_that_fails_is_told_with_what_it_printed(place: Path, tmp_path: Path) -> None:
    write_script(tmp_path / "train.py", TRAINING)
    for name in ("base", "both"):
        arguments = VARIANTS[name]
        assert paritrace(tmp_path, "run", "-o", name, "--steps", "0:1", "train.py", *arguments).status == 0
    compare(tmp_path / "base", tmp_path / "both")
    (tmp_path / "train.py").write_text("raise SystemExit('gone')\n")
    changed = paritrace(tmp_path, "judge", "both", "F1")
    assert changed.status == 2
    assert "[source_changed]" in changed.stderr
