"""Workloads of torch for real ranks: one replicated by DDP, one sharded by FSDP."""

import errno
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from paritrace.session.pytorch import checkpoints, sharded
from paritrace.session.pytorch.digests import digest_of_state
from paritrace.session.pytorch.groups import join
from paritrace.session.pytorch.parts import Parts
from paritrace.session.workload import (
    RUN_BOUNDARY,
    Accepts,
    ConfigField,
    Context,
    Inspected,
    Metrics,
    Plan,
    Refusal,
)

WIDTH = 8


class Replicated:
    """Two layers with dropout, so that the random streams count. `full_on` is a rank whose disk is full at a save."""

    def __init__(self, full_on: int = -1) -> None:
        self.full_on = full_on
        self.next_step = 0

    def load(self, ctx: Context) -> None:
        """Nothing is read: batches are drawn."""

    def build(self, ctx: Context) -> None:
        if not dist.is_initialized():
            join(ctx, "gloo")
        torch.manual_seed(5)
        self.model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Dropout(0.2), nn.Linear(WIDTH, WIDTH))
        self.wrapped = self._wrapped()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=ctx.config["lr"])
        torch.manual_seed(50 + ctx.rank)

    def _wrapped(self) -> nn.Module:
        return DistributedDataParallel(self.model)

    def step(self, ctx: Context, n: int) -> Metrics:
        loss = self.wrapped(torch.randn(4, WIDTH)).square().mean()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.next_step = n + 1
        return {"loss": loss.item()}

    def close(self, ctx: Context) -> None:
        """The process group is left for us."""

    def config_fields(self) -> tuple[ConfigField, ...]:
        return (ConfigField("lr", 0.01, minimum=0.0, impact=RUN_BOUNDARY),)

    def plan_config(self, ctx: Context, changes: Mapping[str, Any]) -> Plan | Refusal:
        return Plan(dict(changes), impact={"lr": RUN_BOUNDARY})

    def apply_config(self, ctx: Context, plan: Plan) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = plan.values["lr"]

    @property
    def parts(self) -> Parts:
        return Parts(model=self.model, optimizer=self.optimizer)

    def save(self, ctx: Context, folder: Path) -> tuple[str, ...]:
        names = checkpoints.save(ctx, self.parts, folder, step=self.next_step)
        if ctx.rank == self.full_on:
            self.full_on = -1  # somebody makes room
            raise OSError(errno.ENOSPC, "No space left on device")
        return names

    def inspect(self, ctx: Context, folder: Path) -> Inspected | Refusal:
        return checkpoints.inspect(ctx, self.parts, folder)

    def apply(self, ctx: Context, inspected: Inspected) -> int:
        self.next_step = checkpoints.apply(self.parts, inspected)
        return self.next_step

    def state_digest(self, ctx: Context) -> str:
        return digest_of_state({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()})


class Sharded(Replicated):
    """The same, its weights spread over the ranks."""

    def _wrapped(self) -> nn.Module:
        mesh = init_device_mesh("cpu", (dist.get_world_size(),))
        for layer in self.model:
            if isinstance(layer, nn.Linear):
                fully_shard(layer, mesh=mesh)
        fully_shard(self.model, mesh=mesh)
        return self.model

    def accepts(self) -> Accepts:
        return Accepts(world_sizes=True)

    def save(self, ctx: Context, folder: Path) -> tuple[str, ...]:
        return sharded.save(ctx, self.parts, folder)

    def inspect(self, ctx: Context, folder: Path) -> Inspected | Refusal:
        return sharded.inspect(ctx, self.parts, folder)

    def apply(self, ctx: Context, inspected: Inspected) -> int:
        return sharded.apply(self.parts, inspected)

    def state_digest(self, ctx: Context) -> str:
        own = {name: value.to_local() for name, value in self.model.state_dict().items()}
        return digest_of_state(own)
