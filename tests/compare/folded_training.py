"""One small training in several layouts, healthy and with faults of loading: `folded_training.py FOLDER NAME…`.

A name is a layout (`one`, `fsdp`, `tp`, `ddp`), or a layout and a fault joined by `-`. Under torchrun all ranks capture
into the same run FOLDER/NAME, one name after the other.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import paritrace

STEPS = 2
VOCABULARY, WIDTH = 11, 8
RANK, WORLD = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


class Model(nn.Module):
    """Uneven shards (5 rows), an empty one (1 row), bfloat16, biases and a tied weight."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.up = nn.Linear(WIDTH, 12)
        self.norm = nn.LayerNorm(12)
        self.down = nn.Linear(12, WIDTH)
        self.odd = nn.Linear(WIDTH, 5)
        self.one = nn.Linear(5, 1)
        self.low = nn.Linear(WIDTH, 6).to(torch.bfloat16)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        hidden: torch.Tensor = self.embed(tokens)
        hidden = hidden + self.down(torch.relu(self.norm(self.up(hidden))))
        low: torch.Tensor = self.low(hidden.to(torch.bfloat16))
        gate = self.one(self.odd(hidden)) + low.float().sum(-1, keepdim=True)
        found: torch.Tensor = self.head(hidden) * torch.sigmoid(gate)
        return found


def laid_out(model: Model, layout: str) -> nn.Module:
    """The model as the layout has it."""
    if layout == "fsdp":
        mesh = init_device_mesh("cpu", (WORLD,), mesh_dim_names=("dp",))
        for module in (model.up, model.down, model.odd, model.one, model.low):
            fully_shard(module, mesh=mesh)
        fully_shard(model, mesh=mesh)
    if layout == "tp":
        plan = {
            "up": ColwiseParallel(output_layouts=Replicate()),
            "down": RowwiseParallel(input_layouts=Replicate()),
            "odd": ColwiseParallel(output_layouts=Replicate()),
        }
        parallelize_module(model, init_device_mesh("cpu", (WORLD,), mesh_dim_names=("tp",)), plan)
    return nn.parallel.DistributedDataParallel(model) if layout == "ddp" else model


def _perturbed(shard: torch.Tensor) -> None:
    if RANK == 1:
        shard += 0.5


def _swapped(shard: torch.Tensor) -> None:
    if RANK == 1:
        shard.copy_(shard[[1, 0, *range(2, shard.shape[0])]])


def _twice(shard: torch.Tensor) -> None:
    dist.broadcast(shard, 0)


FAULTS: dict[str, Callable[[torch.Tensor], None]] = {"perturbed": _perturbed, "swapped": _swapped, "twice": _twice}


def train(layout: str, fault: str) -> nn.Module:
    """Data-parallel layouts share out the batch; the others read all of it on every rank. Returns the trained model."""
    torch.manual_seed(0)
    model = Model()
    wrapped = laid_out(model, layout)
    if fault:
        weight: torch.Tensor = model.up.weight
        with torch.no_grad():
            FAULTS[fault](weight._local_tensor if isinstance(weight, DTensor) else weight)
    optimizer = torch.optim.AdamW(wrapped.parameters(), lr=1e-2, foreach=False)
    data = torch.randint(0, VOCABULARY, (STEPS, 8, 6), generator=torch.Generator().manual_seed(1))
    for step in range(STEPS):
        batch = data[step].chunk(WORLD)[RANK] if layout in ("fsdp", "ddp") else data[step]
        logits = wrapped(batch)
        loss = nn.functional.cross_entropy(logits.reshape(-1, VOCABULARY), batch.reshape(-1))
        torch.autograd.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
    return wrapped


def main() -> None:
    if WORLD > 1:
        dist.init_process_group("gloo")
    for name in sys.argv[2:]:
        layout, _, fault = name.partition("-")
        with paritrace.trace(Path(sys.argv[1]) / name, level="module", diff=False):
            trained = train(layout, fault)  # alive until its last state was recorded
        del trained
    if WORLD > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
