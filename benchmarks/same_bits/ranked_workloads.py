"""Trainings on two ranks: each runs a few steps on this rank and yields the tensors whose bits must not change here.

A process group of two ranks is there when they are called. Batches and dropout differ between data-parallel ranks.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import cache
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

from benchmarks.same_bits.workloads import STEPS, Tensors, Workload, encoder, train


@cache
def mesh() -> DeviceMesh:
    """The two ranks as one dimension; made once, as a job makes it."""
    return init_device_mesh("cpu", (2,), mesh_dim_names=("ranks",))


def reseed() -> None:
    """From here on the ranks draw other batches and masks."""
    torch.manual_seed(100 + dist.get_rank())


def ddp_of(model: nn.Module, **options: Any) -> DistributedDataParallel:
    """Small buckets, so that there are several."""
    return DistributedDataParallel(model, **{"bucket_cap_mb": 0.02, **options})


def ddp_training(optimizer: Callable[..., torch.optim.Optimizer] = torch.optim.AdamW, **options: Any) -> Tensors:
    model = ddp_of(encoder(), **options)
    reseed()
    yield from train(model, optimizer(model.parameters()))


def ddp() -> Tensors:
    yield from ddp_training()


def ddp_bucket_view() -> Tensors:
    yield from ddp_training(gradient_as_bucket_view=True)


def ddp_static_graph() -> Tensors:
    yield from ddp_training(static_graph=True)


class Branches(nn.Module):
    """Two branches, of which each step uses one."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right, self.calls = nn.Linear(32, 32), nn.Linear(32, 32), 0

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        out: torch.Tensor = (self.left if self.calls % 2 else self.right)(batch)
        return out


def ddp_unused_parameters() -> Tensors:
    model = ddp_of(Branches(), find_unused_parameters=True)
    reseed()
    yield from train(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))


def ddp_no_sync() -> Tensors:
    model = ddp_of(encoder())
    optimizer = torch.optim.AdamW(model.parameters())
    reseed()
    for _ in range(STEPS):
        for micro_batch in range(3):
            with model.no_sync() if micro_batch < 2 else nullcontext():
                loss = model(torch.randn(2, 6, 32)).square().mean() / 3
                loss.backward()
            yield loss.detach()
        yield from gradients(model)
        optimizer.step()
        optimizer.zero_grad()
    yield from (p.detach() for p in model.parameters())


def ddp_bfloat16_hook() -> Tensors:
    model = ddp_of(encoder())
    # By its own name torch refuses this hook on the CPU, where it works all the same.
    model.register_comm_hook(None, lambda group, bucket: bf16_compress_hook(group, bucket))  # noqa: PLW0108
    reseed()
    yield from train(model, torch.optim.AdamW(model.parameters()))


def ddp_checkpointing(*, reentrant: bool) -> Tensors:
    class Checkpointed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = encoder().layers

        def forward(self, batch: torch.Tensor) -> torch.Tensor:
            hidden = batch.requires_grad_()
            for layer in self.layers:
                hidden = checkpoint(layer, hidden, use_reentrant=reentrant)
            return hidden

    model = ddp_of(Checkpointed(), static_graph=reentrant)
    reseed()
    yield from train(model, torch.optim.AdamW(model.parameters()))


def ddp_checkpointing_reentrant() -> Tensors:
    yield from ddp_checkpointing(reentrant=True)


def ddp_checkpointing_non_reentrant() -> Tensors:
    yield from ddp_checkpointing(reentrant=False)


def ddp_autocast() -> Tensors:
    model = ddp_of(encoder())
    reseed()

    def forward(batch: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            out: torch.Tensor = model(batch)
            return out

    yield from train(model, torch.optim.AdamW(model.parameters()), forward=forward)


def ddp_batch_norm() -> Tensors:
    model = ddp_of(nn.Sequential(nn.Linear(32, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 8)))
    reseed()
    yield from train(model, torch.optim.SGD(model.parameters(), lr=0.1), shape=(6, 32))


def ddp_grad_scaler() -> Tensors:
    model = ddp_of(encoder())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    reseed()
    for _ in range(STEPS):
        with torch.autocast("cpu", torch.bfloat16):
            loss = model(torch.randn(4, 6, 32)).float().square().mean()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        yield nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        yield loss.detach()
    yield from (p.detach() for p in model.parameters())


def ddp_foreach() -> Tensors:
    yield from ddp_training(lambda parameters: torch.optim.AdamW(parameters, foreach=True))


def ddp_fused() -> Tensors:
    yield from ddp_training(lambda parameters: torch.optim.AdamW(parameters, fused=True))


def zero_redundancy() -> Tensors:
    model = ddp_of(encoder())
    optimizer: Any = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.AdamW, lr=1e-3)
    reseed()
    yield from train(model, optimizer)


def reductions_by_hand() -> Tensors:
    """Synchronous and asynchronous reductions, a gathering and a barrier, as older trainers write them."""
    model = encoder()
    optimizer = torch.optim.AdamW(model.parameters())
    reseed()
    for _ in range(STEPS):
        loss = model(torch.randn(4, 6, 32)).square().mean()
        loss.backward()
        first, *others = [p.grad for p in model.parameters() if p.grad is not None]
        dist.all_reduce(first)
        for work in [dist.all_reduce(gradient, async_op=True) for gradient in others]:
            work.wait()
        gathered = [torch.empty_like(loss) for _ in range(2)]
        dist.all_gather(gathered, loss.detach())
        dist.barrier()
        yield from gathered
        yield from gradients(model)
        optimizer.step()
        optimizer.zero_grad()
    yield from (p.detach() for p in model.parameters())


def fsdp_of(**options: Any) -> nn.Module:
    model = encoder()
    for layer in model.layers:
        fully_shard(layer, mesh=mesh(), **options)
    fully_shard(model, mesh=mesh(), **options)
    return model


def fsdp_training(**options: Any) -> Tensors:
    model = fsdp_of(**options)
    optimizer = torch.optim.AdamW(model.parameters())
    reseed()
    yield from train(model, optimizer)


def fsdp() -> Tensors:
    yield from fsdp_training(reshard_after_forward=True)


def fsdp_kept() -> Tensors:
    yield from fsdp_training(reshard_after_forward=False)


def fsdp_mixed_precision() -> Tensors:
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    yield from fsdp_training(mp_policy=policy)


def fsdp_clipping() -> Tensors:
    """Clipping by the norm of distributed tensors, with accumulation that reduces only in the end."""
    model: Any = fsdp_of()
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    reseed()
    for _ in range(STEPS):
        for micro_batch in range(2):
            model.set_requires_gradient_sync(micro_batch == 1)
            loss = model(torch.randn(4, 6, 32)).square().mean() / 2
            loss.backward()
            yield loss.detach()
        norm: Any = nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        yield norm.full_tensor()
        yield from gradients(model)
        optimizer.step()
        optimizer.zero_grad()
    yield from (p.detach() for p in model.parameters())


def gradients(model: nn.Module) -> Tensors:
    yield from (p.grad.clone() for p in model.parameters() if p.grad is not None)


class Feed(nn.Module):
    """A norm, two linear layers, a residual: what tensor parallelism splits."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(32), nn.Linear(32, 64), nn.Linear(64, 32)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.down(torch.relu(self.up(self.norm(batch))))
        return out


def tensor_parallel() -> Tensors:
    model: nn.Module = nn.Sequential(Feed(), Feed())
    plan = {f"{i}.{name}": style for i in range(2) for name, style in split_linears().items()}
    model = parallelize_module(model, mesh(), plan)
    yield from train(model, torch.optim.AdamW(model.parameters()))


def split_linears() -> dict[str, Any]:
    return {"up": ColwiseParallel(), "down": RowwiseParallel()}


def sequence_parallel() -> Tensors:
    model = parallelize_module(
        Feed(),
        mesh(),
        {
            "norm": SequenceParallel(),
            "up": ColwiseParallel(input_layouts=Shard(1)),
            "down": RowwiseParallel(output_layouts=Shard(1)),
            "": PrepareModuleInput(input_layouts=(Replicate(),), desired_input_layouts=(Shard(1),)),
        },
    )
    yield from train(model, torch.optim.AdamW(model.parameters()))


def tensor_parallel_clipping() -> Tensors:
    model = parallelize_module(Feed(), mesh(), split_linears())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(STEPS):
        loss = model(torch.randn(4, 6, 32)).square().mean()
        loss.backward()
        yield nn.utils.clip_grad_norm_([p for p in model.parameters() if isinstance(p, DTensor)], 0.1)
        optimizer.step()
        optimizer.zero_grad()
        yield loss.detach()
    yield from (p.detach() for p in model.parameters())


def pipeline_of(schedule: type[ScheduleGPipe] | type[Schedule1F1B]) -> Tensors:
    """Two stages, four micro-batches; each rank yields what its stage holds."""
    rank = dist.get_rank()
    stages = [nn.Sequential(nn.Linear(32, 32), nn.Tanh()) for _ in range(2)]
    model = stages[rank]
    stage = PipelineStage(model, rank, 2, torch.device("cpu"))
    run = schedule(stage, n_microbatches=4, loss_fn=nn.functional.mse_loss)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(STEPS):
        batch, target = torch.randn(8, 32), torch.randn(8, 32)
        losses: list[torch.Tensor] = []
        if rank == 0:
            run.step(batch)
        else:
            yield run.step(target=target, losses=losses).detach()
        yield from (loss.detach() for loss in losses)
        yield from gradients(model)
        optimizer.step()
        optimizer.zero_grad()
    yield from (p.detach() for p in model.parameters())


def pipeline_gpipe() -> Tensors:
    yield from pipeline_of(ScheduleGPipe)


def pipeline_1f1b() -> Tensors:
    yield from pipeline_of(Schedule1F1B)


RANKED: dict[str, Workload] = {
    "DDP": ddp,
    "DDP, gradients as bucket views": ddp_bucket_view,
    "DDP, static graph": ddp_static_graph,
    "DDP, unused parameters": ddp_unused_parameters,
    "DDP, no_sync accumulation": ddp_no_sync,
    "DDP, bfloat16 compression hook": ddp_bfloat16_hook,
    "DDP, checkpointing, reentrant": ddp_checkpointing_reentrant,
    "DDP, checkpointing, non-reentrant": ddp_checkpointing_non_reentrant,
    "DDP, bfloat16 autocast": ddp_autocast,
    "DDP, batch norm": ddp_batch_norm,
    "DDP, grad scaler, clipping": ddp_grad_scaler,
    "DDP, AdamW foreach": ddp_foreach,
    "DDP, AdamW fused": ddp_fused,
    "DDP, ZeroRedundancyOptimizer": zero_redundancy,
    "reductions by hand": reductions_by_hand,
    "FSDP2": fsdp,
    "FSDP2, not resharded after forward": fsdp_kept,
    "FSDP2, bfloat16 parameters": fsdp_mixed_precision,
    "FSDP2, accumulation, clipping": fsdp_clipping,
    "tensor parallel, columns and rows": tensor_parallel,
    "tensor parallel, sequence parallel": sequence_parallel,
    "tensor parallel, clipping": tensor_parallel_clipping,
    "pipeline of two stages, GPipe": pipeline_gpipe,
    "pipeline of two stages, 1F1B": pipeline_1f1b,
}

# The hook's callback widens the bucket on gloo's thread or, when the sum is there already, on ours: a bare training
# that is merely slower does it elsewhere, too. A mode sees its own thread alone, so this operator is not counted there.
ON_ANY_THREAD = {"DDP, bfloat16 compression hook": frozenset({"aten.copy_.default"})}
