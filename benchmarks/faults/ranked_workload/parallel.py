"""The ranks as a grid of data and tensor parallelism, and the collectives that join them."""

from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

# Parameters that tensor parallelism splits, and along which dimension; all others are whole on every rank.
SPLIT = {"qkv.weight": 0, "output.weight": 1, "up.weight": 0, "up.bias": 0, "down.weight": 1}


@dataclass(frozen=True)
class Grid:
    """The groups of this rank; with `sequence`, what lies between the split layers is split by position."""

    mesh: DeviceMesh
    data: dist.ProcessGroup
    tensor: dist.ProcessGroup
    data_rank: int
    data_size: int
    tensor_rank: int
    tensor_size: int
    sequence: bool


def make_grid(tensor_size: int, *, sequence: bool) -> Grid:
    shape = (dist.get_world_size() // tensor_size, tensor_size)
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=("dp", "tp"))
    data_rank, tensor_rank = mesh.get_coordinate()
    groups = mesh["dp"].get_group(), mesh["tp"].get_group()
    return Grid(mesh, *groups, data_rank, shape[0], tensor_rank, shape[1], sequence)


def split_dim(name: str) -> int | None:
    """Along which dimension the parameter is split, None for one that is whole."""
    return next((dim for ending, dim in SPLIT.items() if name.endswith(ending)), None)


def broadcast_weights(model: nn.Module) -> None:
    """Every rank starts from rank 0's weights."""
    for parameter in model.parameters():
        dist.broadcast(parameter.data, src=0)


def split_weights(model: nn.Module, grid: Grid) -> None:
    """Each split parameter is replaced by this rank's part of it."""
    for name, parameter in list(model.named_parameters()):
        dim = split_dim(name)
        if dim is not None:
            part = parameter.detach().chunk(grid.tensor_size, dim)[grid.tensor_rank]
            owner, _, last = name.rpartition(".")
            setattr(model.get_submodule(owner), last, nn.Parameter(part.clone()))


class Copy(torch.autograd.Function):
    """Whole activations go into a split layer: every rank adds to their gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: dist.ProcessGroup) -> Tensor:
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        gradient = gradient.clone()
        dist.all_reduce(gradient, group=ctx.group)
        return gradient, None


class Sum(torch.autograd.Function):
    """The parts of a split layer's output are added up."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: dist.ProcessGroup) -> Tensor:  # noqa: ARG004
        x = x.clone()
        dist.all_reduce(x, group=group)
        return x

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:  # noqa: ARG004
        return gradient, None


class Gather(torch.autograd.Function):
    """Positions [T/n, B, W] of all ranks are put together to [T, B, W]."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: dist.ProcessGroup) -> Tensor:
        ctx.group = group
        return gathered(x, group)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return summed_part(gradient, ctx.group), None


class Scatter(torch.autograd.Function):
    """The parts of a split layer's output are added up, and each rank keeps its positions."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: dist.ProcessGroup) -> Tensor:
        ctx.group = group
        return summed_part(x, group)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gathered(gradient, ctx.group), None


def gathered(x: Tensor, group: dist.ProcessGroup) -> Tensor:
    out = x.new_empty(group.size() * x.shape[0], *x.shape[1:])
    dist.all_gather_into_tensor(out, x.contiguous(), group=group)
    return out


def summed_part(x: Tensor, group: dist.ProcessGroup) -> Tensor:
    out = x.new_empty(x.shape[0] // group.size(), *x.shape[1:])
    dist.reduce_scatter_tensor(out, x.contiguous(), group=group)
    return out


def enter(x_TBW: Tensor, grid: Grid) -> Tensor:
    """What a layer that is split by columns reads: all positions."""
    if grid.tensor_size == 1:
        return x_TBW
    function: Any = Gather if grid.sequence else Copy
    gathered_TBW: Tensor = function.apply(x_TBW, grid.tensor)
    return gathered_TBW


def leave(x_TBW: Tensor, grid: Grid) -> Tensor:
    """What a layer that is split by rows gives: the sum over the ranks."""
    if grid.tensor_size == 1:
        return x_TBW
    function: Any = Scatter if grid.sequence else Sum
    summed_TBW: Tensor = function.apply(x_TBW, grid.tensor)
    return summed_TBW


def own_positions(x: Tensor, grid: Grid) -> Tensor:
    """This rank's part of the first dimension."""
    return x.chunk(grid.tensor_size)[grid.tensor_rank] if grid.sequence else x


def summed(x: Tensor, grid: Grid) -> Tensor:
    out = x.clone()
    dist.all_reduce(out, group=grid.tensor)
    return out


def sum_over_positions(model: nn.Module, grid: Grid) -> None:
    """Whole parameters see this rank's positions only: their gradients are added up as they come."""
    for name, parameter in model.named_parameters():
        if split_dim(name) is not None:
            continue
        parameter.register_hook(lambda gradient: summed(gradient, grid))


def reduce_gradients(model: nn.Module, grid: Grid) -> None:
    """Gradients are added up over the data-parallel ranks; the loss is divided by the tokens of all of them."""
    for name, parameter in model.named_parameters():
        gradient = gradient_of(name, parameter)
        dist.all_reduce(gradient, group=grid.data)


def gradient_of(name: str, parameter: nn.Parameter) -> Tensor:
    if parameter.grad is None:
        raise ValueError(f"{name} has no gradient")
    return parameter.grad


def clip(model: nn.Module, grid: Grid, *, largest: float) -> Tensor:
    """Scale the gradients down to the norm `largest` of the whole model; returns the norm before."""
    split, whole = torch.zeros(()), torch.zeros(())
    for name, parameter in model.named_parameters():
        square = gradient_of(name, parameter).square().sum()
        if split_dim(name) is None:
            whole += square
        else:
            split += square
    dist.all_reduce(split, group=grid.tensor)
    norm = (split + whole).sqrt()
    scale = (largest / (norm + 1e-6)).clamp(max=1.0)
    for name, parameter in model.named_parameters():
        gradient_of(name, parameter).mul_(scale)
    return norm
