"""A call written down as operators, and run.py of a capsule running it, alone and on two ranks (CP-26)."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import nn

from paritrace.capture.pytorch.replay_answer import answer, exact
from paritrace.evidence.replays import Replayed, Traced
from paritrace.evidence.tensor_bundles import Piece, bundle
from paritrace.reports.capsule_text import CapsuleFacts, ProgramFacts, program_text, readme_text
from paritrace.reports.documents import encoded
from tests.capture.golden_calls import golden_of, request_of, task_of

RUN_SECONDS = 300  # many times what a capsule takes; only one that hangs gets there


class Averaged(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mine = x * 2
        dist.all_reduce(mine)
        return mine * 0.5


class Dropped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.drop = nn.Dropout(0.5)

    def forward(self, x: torch.Tensor, *, twice: bool = False) -> dict[str, torch.Tensor]:
        hidden = self.drop(self.linear(x).t())
        return {"a": hidden * 2 if twice else hidden, "b": hidden.sum() > torch.tensor(0.25)}


class ByValue(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * x.numpy().shape[0] if x.sum().item() > 1 else x


def replayed(module: nn.Module, folder: Path, *args: torch.Tensor, **kwargs: bool) -> tuple[Replayed, dict[str, Piece]]:
    task = task_of(golden_of(module, folder, *args, **kwargs), folder)
    return answer(module, task, request_of(task, output=folder, trace=True), args=(), kwargs={})


@pytest.fixture
def group(tmp_path: Path) -> Iterator[None]:
    """A process group of this process alone."""
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def write_capsule(folder: Path, answers: Mapping[str, tuple[Traced, Mapping[str, Piece]]]) -> CapsuleFacts:
    """A capsule of these programs, both sides of each rank."""
    folder.mkdir()
    programs: dict[str, ProgramFacts] = {}
    for key, (traced, pieces) in answers.items():
        data = b"".join(bytes(chunk) for chunk in bundle(dict(pieces)))
        (folder / f"{key}.safetensors").write_bytes(data)
        programs[key] = ProgramFacts(
            f"{key}.safetensors",
            sha256(data).hexdigest(),
            traced.arguments,
            traced.outputs,
            traced.constants,
            traced.strides,
            traced.groups,
            traced.reductions,
            "it",
            "It",
        )
    first = next(iter(answers.values()))[0]
    ranks = tuple(sorted({int(key[-1]) for key in answers}))
    title = 'F1: "it" \\ """'
    facts = CapsuleFacts(
        "paritrace-capsule", "1.0", title, "F", 0, ranks, first.collectives, first.settings, programs, ()
    )
    (folder / "run.py").write_text(program_text(facts, {key: traced for key, (traced, _) in answers.items()}))
    (folder / "capsule.json").write_bytes(encoded(facts))
    return facts


def run(folder: Path) -> "subprocess.CompletedProcess[str]":
    environment = {"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-I", "-B", str(folder / "run.py")]
    return subprocess.run(
        command, cwd="/", env=environment, capture_output=True, text=True, timeout=RUN_SECONDS, check=False
    )


def test_cp26_a_call_is_written_down_with_its_arguments_outputs_and_draws(tmp_path: Path) -> None:
    found, pieces = replayed(Dropped().train(), tmp_path, torch.randn(4, 8), twice=True)
    assert found.traced is not None, found.not_traced
    assert found.traced.arguments == ("args[0]", "parameter linear.weight", "parameter linear.bias")
    assert found.traced.outputs == ("out.a", "out.b")
    assert found.traced.draws
    assert found.traced.source.startswith("def call(self, ")
    assert {"argument/0", "argument/2", "bits/out.a", "bits/out.b", "generator/torch_cpu"} <= pieces.keys()
    assert found.traced.settings["torch"] == str(torch.__version__)


def test_cp26_what_the_tracer_cannot_follow_is_said(tmp_path: Path) -> None:
    found, pieces = replayed(ByValue(), tmp_path, torch.randn(4, 8))
    assert found.traced is None
    assert found.not_traced
    assert not found.refused  # it is judged all the same
    assert "bits/out" not in pieces


def test_cp26_a_collective_is_written_down_with_its_ranks_and_reduction(tmp_path: Path, group: None) -> None:
    found, _ = replayed(Averaged(), tmp_path, torch.ones(3))
    assert found.traced is not None, found.not_traced
    assert found.traced.collectives
    assert list(found.traced.groups.values()) == [(0,)]
    assert list(found.traced.reductions.values()) == ["SUM"]
    assert "c10d.allreduce_.default" in found.traced.source


@pytest.mark.slow
def test_cp26_run_py_draws_what_was_drawn(tmp_path: Path) -> None:
    found, pieces = replayed(Dropped().train(), tmp_path, torch.randn(4, 8).t().contiguous().t())
    assert found.traced is not None
    both = {f"{side}-rank0": (found.traced, pieces) for side in ("baseline", "candidate")}
    facts = write_capsule(tmp_path / "capsule", both)
    assert "# F1" in readme_text(facts, "The verdict.")
    done = run(tmp_path / "capsule")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("the recorded bits") == 4


@pytest.mark.slow
def test_cp26_run_py_starts_the_ranks_of_a_collective(tmp_path: Path, group: None) -> None:
    found, _ = replayed(Averaged(), tmp_path, torch.ones(3))
    assert found.traced is not None
    mine = [torch.tensor([1.0, 2.0, 3.0]), torch.tensor([10.0, 20.0, 30.0])]
    answers = {
        f"{side}-rank{rank}": (found.traced, {"argument/0": exact(mine[rank]), "bits/out": exact(mine[0] + mine[1])})
        for rank in range(2)
        for side in ("baseline", "candidate")
    }
    write_capsule(tmp_path / "capsule", answers)
    done = run(tmp_path / "capsule")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("the recorded bits") == 4
    answers["candidate-rank1"] = (found.traced, {**answers["candidate-rank1"][1], "bits/out": exact(mine[0])})
    write_capsule(tmp_path / "other", answers)
    assert run(tmp_path / "other").returncode == 1
