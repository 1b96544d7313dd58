"""paritrace narrow on real trainings: from the commands to the operator and its line (CP-15, CP-10b)."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks import warm

PATIENCE_SECONDS = 1800.0  # eight captures one after the other; only something that hangs gets there

EXAMPLES = Path(__file__).parents[2] / "examples"
PARITRACE = ("-m", "paritrace")

TRAINING = """
import argparse, os
import torch
parser = argparse.ArgumentParser()
parser.add_argument("--eps", type=float, default=1e-5)
parser.add_argument("--seed", type=int, default=0)
options = parser.parse_args()
if options.seed >= 0:
    torch.manual_seed(options.seed)
model = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.LayerNorm(6), torch.nn.Linear(6, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    if step == 2:
        model[1].eps = options.eps
    model(torch.randn(4, 6)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(TRAINING)
    return path


def environment() -> dict[str, str]:
    return {name: value for name, value in warm.environment().items() if not name.startswith("PARITRACE_")}


def paritrace(*arguments: str, directory: Path) -> str:
    """Run a command as a user would and return what it printed."""
    done = subprocess.run(
        (warm.python(), *PARITRACE, *arguments),
        cwd=directory,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def record(name: str, script: Path, *arguments: str, directory: Path, options: tuple[str, ...] = ()) -> None:
    paritrace("run", "-o", name, "--level", "digest", *options, str(script), *arguments, directory=directory)


def narrowed(*options: str, directory: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(paritrace("narrow", "A", "B", "--json", *options, directory=directory))
    return found


def nothing_runs_in(folder: Path) -> bool:
    """Whether no process writes a run below a folder, once those that were told to end have."""
    until = time.monotonic() + 60.0
    while time.monotonic() < until:
        if not any(str(folder).encode() in _command_line(path) for path in Path("/proc").glob("[0-9]*/cmdline")):
            return True
    return False


def _command_line(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it has ended meanwhile
        return b""


def asked_of(found: dict[str, Any]) -> list[str]:
    return [one["plan"]["question"] for one in found["rounds"]]


@pytest.mark.slow
def test_another_attention_and_a_wrong_epsilon_end_at_the_norms_addition(tmp_path: Path) -> None:
    train, common = EXAMPLES / "llama" / "train.py", ("--layers", "2", "--steps", "1")
    record("A", train, *common, directory=tmp_path)
    record("B", train, *common, "--attn", "sdpa", "--eps", "1e-5", directory=tmp_path)
    found = narrowed(directory=tmp_path)
    assert asked_of(found) == ["repeat", "step", "modules", "operators"]
    place = found["place"]
    assert found["ended"] == "found"
    assert (place["function"], place["module"]) == ("aten.add.Tensor", "model.layers.0.input_layernorm")
    assert place["baseline_site"] == place["candidate_site"]
    assert "torch.rsqrt(variance + self.variance_epsilon)" in place["baseline_source"]
    assert all(one["seconds"] > 0 and one["commands"] for one in found["rounds"] if one["plan"]["question"] != "step")
    assert (tmp_path / "B.narrow" / "round-4" / "comparison" / "comparison.json").exists()


@pytest.mark.slow
def test_a_parameter_that_one_rank_group_does_not_reduce_ends_at_the_collective(tmp_path: Path) -> None:
    train = EXAMPLES / "ddp" / "train.py"
    launched = ("--launcher", f"{warm.python()} -m torch.distributed.run --standalone --nproc-per-node 2")
    record("A", train, "--steps", "1", directory=tmp_path, options=launched)
    record("B", train, "--steps", "1", "--leave-out", "head.bias", directory=tmp_path, options=launched)
    found = narrowed(directory=tmp_path)
    assert found["ended"] == "found"
    assert "no all_reduce of group world contains the gradient of head.bias" in found["sentence"]
    assert found["place"]["baseline_source"] == found["place"]["candidate_source"] == "loss.backward()"
    assert found["rounds"][0]["answer"].startswith("yes, bit for bit")


@pytest.mark.slow
def test_a_fault_that_starts_at_a_late_step_is_found_there_also_after_a_kill(script: Path) -> None:
    place = script.parent
    record("A", script, directory=place)
    record("B", script, "--eps", "1e-3", directory=place)
    first = subprocess.Popen(
        (sys.executable, *PARITRACE, "narrow", "A", "B"),  # a process of its own, with those that it starts
        cwd=place,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    until = time.monotonic() + PATIENCE_SECONDS
    while not (place / "B.narrow" / "round-3").exists() and time.monotonic() < until:
        os.sched_yield()
    first.send_signal(signal.SIGKILL)
    first.communicate(timeout=PATIENCE_SECONDS)
    assert nothing_runs_in(place / "B.narrow"), "what a killed narrowing had started ends with it"
    before = (place / "B.narrow" / "round-1" / "round.json").read_bytes()
    found = narrowed(directory=place)
    assert (place / "B.narrow" / "round-1" / "round.json").read_bytes() == before
    assert asked_of(found) == ["repeat", "step", "modules", "operators"]
    assert found["rounds"][2]["comparison"] == "round-3.2/comparison"
    assert found["remarks"] == ["not finished, and kept: round-3"]
    assert (found["place"]["step"], found["place"]["module"]) == (2, "1")
    assert found["place"]["function"] == "aten.native_layer_norm.default"
    again = narrowed(directory=place)
    assert again["rounds"] == found["rounds"]


@pytest.mark.slow
def test_a_baseline_that_does_not_repeat_itself_is_said_and_nothing_is_claimed(script: Path) -> None:
    record("A", script, "--seed", "-1", directory=script.parent)
    record("B", script, "--seed", "-1", directory=script.parent)
    found = narrowed(directory=script.parent)
    assert found["ended"] == "not_repeatable"
    assert found["place"] is None
    assert asked_of(found) == ["repeat", "step", "repeat_call"]
    assert (found["repeats"]["num_differing"], found["repeats"]["num_repeats"]) == (3, 3)
    assert found["rounds"][0]["answer"].startswith("no: from step 0 on")
    screen = paritrace("narrow", "A", "B", directory=script.parent)
    assert "the baseline does not repeat itself: first at " in screen
    assert len(screen.splitlines()) <= 34


@pytest.mark.slow
def test_in_float64_the_other_attention_falls_to_round_off_and_the_norm_stays(tmp_path: Path) -> None:
    train, common = EXAMPLES / "llama" / "train.py", ("--layers", "1", "--steps", "1")
    wide = ("--upcast", "float64", "--level", "module", "--steps", "0:1")
    record("A", train, *common, directory=tmp_path, options=wide)
    record("B", train, *common, "--attn", "sdpa", directory=tmp_path, options=wide)
    record("C", train, *common, "--attn", "sdpa", "--eps", "1e-5", directory=tmp_path, options=wide)
    kernel, norm = (json.loads(paritrace("compare", "A", name, "--json", directory=tmp_path)) for name in "BC")
    errors = [slot["relative_error"] for slot in kernel["first_difference"]["slots"] if slot["relative_error"]]
    assert errors
    assert max(errors) < 1e-14
    first = norm["first_difference"]
    assert first["module"] == "model.layers.0.input_layernorm"
    assert first["slots"][0]["relative_error"] > 1e-3
    sessions = json.loads((tmp_path / "A" / "run.json").read_text())["sessions"]
    assert [one["metadata"]["upcast"] for one in sessions] == ["float64"]
    assert all("not_lifted" not in one["metadata"] for one in sessions)


COMPILED = """
import argparse
import torch
from torch._inductor import decomposition
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(8, 8), torch.nn.Linear(8, 1)
    def forward(self, x):
        return self.down(torch.tanh(self.up(x)))
parser = argparse.ArgumentParser()
parser.add_argument("--compile", action="store_true")
options = parser.parse_args()
if options.compile:  # a decomposition with a mistake, as an extension may register one: of a gradient alone
    def backward(grad, y):
        return grad * (1.02 - y * y)
    decomposition.decompositions[torch.ops.aten.tanh_backward.default] = backward
torch.manual_seed(0)
model = Model()
run = torch.compile(model, backend="aot_eager_decomp_partition") if options.compile else model
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
run(torch.randn(4, 8)).square().mean().backward()
optimizer.step()
"""


@pytest.mark.slow
def test_a_decomposition_with_a_mistake_is_named_by_the_compilers_bisector(tmp_path: Path) -> None:
    """Only gradients show it, and those of a wrapped model bear `_orig_mod.` in their names."""
    script = tmp_path / "train.py"
    script.write_text(COMPILED)
    record("A", script, directory=tmp_path)
    record("B", script, "--compile", directory=tmp_path)
    found = narrowed("--compile", directory=tmp_path)
    assert asked_of(found) == ["repeat", "step", "modules", "compiler"]
    answer = found["rounds"][-1]["answer"]
    assert answer.startswith("backend aot_eager_decomp_partition, decomposition ")
    assert "tanh_backward" in answer
    assert found["remarks"] == ["bits decided what is good: with --perturb 8 it would be draws"]
    assert found["ended"] == "found"
