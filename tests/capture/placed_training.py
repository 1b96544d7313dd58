"""A small training that any layout can run: bare, FSDP2 with and without replicas, tensor parallel, or both of these.

Run by the tests under torchrun as `placed_training.py FOLDER LAYOUT...`: captures each layout into FOLDER/LAYOUT, and
writes what it noticed of its own tensors to FOLDER/LAYOUT.RANK.json.
"""

import gc
import json
import os
import sys
import weakref
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import paritrace

STEPS = 2
WIDTH, HIDDEN = 10, 37  # odd on purpose: over two ranks shards are uneven, and over four one of FSDP2's is empty


class Block(torch.nn.Module):
    """Two layers, of which tensor parallelism cuts the first by columns and the second by rows."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.up = torch.nn.Linear(WIDTH, hidden)
        self.down = torch.nn.Linear(hidden, WIDTH)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.down(torch.tanh(self.up(batch)))
        return found


class Model(torch.nn.Module):
    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.first: torch.nn.Module = Block(hidden)
        self.second: torch.nn.Module = Block(hidden)
        self.head = torch.nn.Linear(WIDTH, 1)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.head(self.second(self.first(batch)))
        return found


def model_of(layout: str) -> torch.nn.Module:
    """The model of a layout: the same weights in each, `tp` ones with a hidden size that two ranks share evenly."""
    torch.manual_seed(0)
    model = Model(HIDDEN + 1 if "tp" in layout else HIDDEN)
    if layout == "fsdp":
        sharded(model, init_device_mesh("cpu", (dist.get_world_size(),), mesh_dim_names=("dp",)))
    elif layout == "hsdp":
        sharded(model, init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicas", "dp")))
    elif layout == "tp":
        cut(model, init_device_mesh("cpu", (dist.get_world_size(),), mesh_dim_names=("tp",)))
    elif layout == "fsdp_tp":
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        cut(model, mesh["tp"])
        sharded(model, mesh["dp"])
    return model


def cut(model: Model, mesh: DeviceMesh) -> None:
    for block in (model.first, model.second):
        parallelize_module(block, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})


def sharded(model: Model, mesh: DeviceMesh) -> None:
    for block in (model.first, model.second):
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)


def train(layout: str) -> dict[str, Any]:
    """Trains; returns the losses' bits, and whether the capture left tensors as they were."""
    model = model_of(layout)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    losses, gradients, resizable = [], list[Any](), set[bool]()
    for step in range(STEPS):
        torch.manual_seed(100 + step)
        batch = torch.randn(4, WIDTH)  # the same on all ranks, so that the gradients are those of one process
        loss = model(batch).square().mean()
        torch.autograd.backward(loss)
        optimizer.step()
        for parameter in model.parameters():
            assert parameter.grad is not None
            parts = [part for part in map(local, (parameter, parameter.grad)) if part.untyped_storage().nbytes()]
            resizable |= {part.untyped_storage().resizable() for part in parts}
            gradients.append(weakref.ref(local(parameter.grad)))
        optimizer.zero_grad()
        losses.append(float(loss.detach()).hex())
    del parameter, parts
    gc.collect()
    alive = sum(reference() is not None for reference in gradients)
    return {"losses": losses, "resizable": sorted(resizable), "gradients": len(gradients), "alive": alive}


def local(tensor: torch.Tensor) -> torch.Tensor:
    return tensor._local_tensor if isinstance(tensor, DTensor) else tensor


def captured(folder: Path, layout: str, level: str = "module") -> None:
    with paritrace.trace(folder / layout, level=level, diff=False):
        noticed = train(layout)
    rank = os.environ.get("RANK", "0")
    (folder / f"{layout}.{rank}.json").write_text(json.dumps(noticed))


def main() -> None:
    dist.init_process_group("gloo")
    for layout in sys.argv[2:]:
        captured(Path(sys.argv[1]), layout)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
