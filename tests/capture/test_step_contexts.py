"""Steps that a grad scaler skips, micro-batches of pipelines and of no_sync, optimizers inside optimizers (CA-3)."""

from pathlib import Path
from textwrap import dedent

import pytest

import paritrace
from benchmarks import warm
from paritrace.capture.steps import Steps
from paritrace.evidence.calls import Call, Context, Function, LossMark, Phase, StepMark
from paritrace.evidence.codec import Record
from paritrace.evidence.gaps import Gap
from paritrace.evidence.journal import Loss
from paritrace.process.ranks import run_ranks
from paritrace.runs.reading import open_run

pytest.importorskip("torch")

import torch

DEADLINE_SECONDS = 240


def records(run: Path, *, rank: int = 0) -> list[Record]:
    with open_run(run) as opened:
        (session,) = [view for view in opened.sessions if view.rank == rank]
        return [item for item in opened.records(session.session_id) if not isinstance(item, Loss)]


def steps_of(found: list[Record]) -> list[StepMark]:
    return [record for record in found if isinstance(record, StepMark)]


def test_a_skipped_optimizer_step_makes_the_step_due() -> None:
    steps = Steps()
    steps.backward_begins()
    steps.backward_ended()
    steps.optimizer_skipped(1)
    assert (steps.due, steps.optimizer_steps, steps.microbatch) == (True, 0, 0)
    assert steps.ends_before_forward()
    assert steps.ends_before_optimizer(1)


@pytest.mark.parametrize("fused", [False, True])
def test_a_step_that_the_scaler_skips_is_a_step(tmp_path: Path, fused: bool) -> None:
    torch.manual_seed(0)
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, fused=fused)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
    original = torch.amp.GradScaler.__dict__["_maybe_opt_step"]
    with paritrace.trace(tmp_path / "run", diff=False, steps=(0, 4)):
        for step in range(4):
            loss = model(torch.ones(3, 2)).square().mean() * (float("inf") if step == 1 else 1.0)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
    assert torch.amp.GradScaler.__dict__["_maybe_opt_step"] is original
    assert scaler.get_scale() == 1.0, "one step was skipped"
    found = records(tmp_path / "run")
    assert [(mark.step, mark.backwards) for mark in steps_of(found)] == [(0, 1), (1, 1), (2, 1), (3, 1)]
    stepped = [mark.optimizer_steps for mark in steps_of(found)]
    assert stepped == ([1, 1, 1, 1] if fused else [1, 0, 1, 1]), "a fused one is asked, and skips by itself"
    assert [(mark.step, mark.microbatch) for mark in found if isinstance(mark, LossMark)] == [(n, 0) for n in range(4)]


TRAINING = """
import os
import torch
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
import paritrace

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)

# Steps 0 and 1: GPipe, then 1F1B, four micro-batches each.
layers = [torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)]
part = layers[rank]
stage = PipelineStage(part, rank, 2, torch.device("cpu"))
optimizer = torch.optim.SGD(part.parameters(), lr=0.1)
for make in (ScheduleGPipe, Schedule1F1B):
    schedule = make(stage, n_microbatches=4, loss_fn=torch.nn.functional.mse_loss)
    if rank == 0:
        schedule.step(torch.randn(8, 4))
    else:
        schedule.step(target=torch.zeros(8, 4))
    optimizer.step()
    optimizer.zero_grad()

# Steps 2 and 3: DDP, two micro-batches of which the first is not reduced; the optimizer's state is sharded.
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)))
sharded = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=0.1)
for step in range(2):
    with model.no_sync():
        model(torch.randn(2, 4)).sum().backward()
    model(torch.randn(2, 4)).sum().backward()
    sharded.step()
    sharded.zero_grad()
norm = torch.cat([layer.weight.grad.flatten() for layer in layers if layer.weight.grad is not None] or [torch.zeros(1)])
print(float(norm.sum()), flush=True)
dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two gloo ranks: two steps of a pipeline, two of DDP with accumulation and a sharded optimizer."""
    folder = tmp_path_factory.mktemp("contexts")
    (folder / "train.py").write_text(dedent(TRAINING))
    command = [warm.python(), "-m", "paritrace", "run", "-o", "run", "--no-diff", "--level", "op", "--steps", "0:4"]
    environment = warm.environment()
    ended = run_ranks(
        [*command, "train.py"],
        num_ranks=2,
        directory=folder,
        environment=environment,
        deadline_seconds=DEADLINE_SECONDS,
    )
    assert [one.status for one in ended] == [0, 0], [one.stderr[-2000:] for one in ended]
    return folder / "run"


def order(found: list[Record], *, step: int, function: str, phase: Phase) -> list[int]:
    """The micro-batches of one operator's calls, in the order in which they were made."""
    contexts = {record.id: record for record in found if isinstance(record, Context)}
    functions = {record.id: record.name for record in found if isinstance(record, Function)}
    calls = sorted((record for record in found if isinstance(record, Call)), key=lambda call: call.id)
    at = [(contexts[call.context], functions[call.function]) for call in calls]
    return [c.microbatch for c, name in at if (c.step, c.phase, name) == (step, phase, function)]


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
def test_micro_batches_of_a_pipeline_are_those_of_its_schedule(run: Path, rank: int) -> None:
    found = records(run, rank=rank)
    for step in (0, 1):
        forward = order(found, step=step, function="aten.addmm.default", phase=Phase.FORWARD)
        # Before its first step each schedule has the stage's module run once on meta tensors, to learn shapes.
        assert forward == [0, 0, 1, 2, 3], (step, forward)
        backward = order(found, step=step, function="aten.mm.default", phase=Phase.BACKWARD)
        assert sorted(set(backward)) == [0, 1, 2, 3]
        assert backward == sorted(backward)
    if rank == 1:
        losses = order(found, step=1, function="aten.mse_loss.default", phase=Phase.FORWARD)
        assert losses == [0, 0, 1, 2, 3], "once on meta tensors, too"
        marks = [m.microbatch for m in found if isinstance(m, LossMark) and m.step == 1]
        assert marks == [0, 1, 2, 3]


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
def test_micro_batches_under_no_sync_and_a_norm_that_counts_gradients_once(run: Path, rank: int) -> None:
    found = records(run, rank=rank)
    marks = {mark.step: mark for mark in steps_of(found)}
    assert sorted(marks) == [0, 1, 2, 3]
    for step in (2, 3):
        assert marks[step].backwards == 2
        forward = order(found, step=step, function="aten.addmm.default", phase=Phase.FORWARD)
        assert forward == [0, 0, 1, 1]
    norms = {record.grad_norm for other in (0, 1) for record in steps_of(records(run, rank=other)) if record.step == 3}
    assert len(norms) == 1, "each rank holds all gradients; its own optimizer, inside, a part of them again"
    assert not any(isinstance(norm, Gap) for norm in norms)
