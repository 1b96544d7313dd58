"""Trainings on two ranks, one after another in one job, each captured into a run directory of its own."""

import sys
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

import paritrace

STEPS = 2


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.head(torch.relu(self.body(x)))
        return out


def ddp(net: nn.Module) -> nn.Module:
    return DistributedDataParallel(net)


def ignored(net: nn.Module) -> nn.Module:
    DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(net, ["head.weight"])  # type: ignore[no-untyped-call]  # torch's
    return DistributedDataParallel(net)


def fsdp(net: nn.Module) -> nn.Module:
    for module in (*net.children(), net):
        fully_shard(module)
    return net


def tensor_parallel(net: nn.Module) -> nn.Module:
    mesh = init_device_mesh("cpu", (dist.get_world_size(),), mesh_dim_names=("tp",))
    return parallelize_module(net, mesh, {"body": ColwiseParallel(), "head": RowwiseParallel()})


def reduce(net: nn.Module, *, case: str, alone: dist.ProcessGroup) -> None:
    """A loop of the workload's own over its gradients."""
    for name, parameter in net.named_parameters():
        if case == "missing" and name == "head.weight":
            continue
        operation = dist.ReduceOp.MAX if case == "max" else dist.ReduceOp.SUM
        dist.all_reduce(parameter.grad, op=operation, group=alone if case == "group" else None)
        if case == "doubled" and name == "head.weight":
            dist.all_reduce(parameter.grad)


def trained(run: Path, *, wrap: Callable[[nn.Module], nn.Module] | None = None, case: str = "") -> None:
    rank = dist.get_rank()
    alone = [dist.new_group([member]) for member in range(dist.get_world_size())][rank]
    with paritrace.trace(run, level=("module", "op"), steps=(0, STEPS)):
        torch.manual_seed(0)
        net = Net() if wrap is None else wrap(Net())
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        data = torch.Generator().manual_seed(0 if wrap is tensor_parallel else 100 + rank)
        for _ in range(STEPS):
            net(torch.randn(6, 8, generator=data)).square().mean().backward()
            if wrap is None:
                reduce(net, case=case, alone=alone)
            optimizer.step()
            optimizer.zero_grad()
    dist.barrier()


def main(place: Path) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    for wrap in (ddp, fsdp, tensor_parallel):
        for number in (1, 2):
            trained(place / f"{wrap.__name__}-{number}", wrap=wrap)
    trained(place / "ignored", wrap=ignored)
    for case in ("plain", "missing", "doubled", "max", "group"):
        trained(place / case, case=case)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
