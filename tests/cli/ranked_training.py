"""A small data-parallel training by hand or by DDP, with a fault by name; started by torchrun."""

import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

fault = sys.argv[1]
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.LayerNorm(32), nn.Dropout(0.5), nn.Linear(32, 4))
pairs = [dist.new_group([first, first + 1]) for first in range(0, world, 2)] if fault == "wrong group" else []
trained = DistributedDataParallel(model) if fault == "none" else model
torch.manual_seed(rank)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
data = torch.Generator().manual_seed(5 + rank)
for step in range(3):
    x = torch.randn(8, 16, generator=data)
    if fault == "not reduced" and step == 2:
        dist.broadcast(x, src=0)
    optimizer.zero_grad()
    trained(x).square().mean().backward()
    for name, parameter in model.named_parameters():
        if fault == "none" or (fault == "not reduced" and name == "3.weight"):
            continue
        assert parameter.grad is not None
        dist.all_reduce(parameter.grad, group=pairs[rank // 2] if pairs and name == "3.weight" else None)
        parameter.grad /= world
    optimizer.step()
dist.destroy_process_group()
