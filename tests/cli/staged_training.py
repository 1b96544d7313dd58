"""A training of some ranks over gloo that goes on until it is told to end; says its processes on standard output."""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

num_steps = int(sys.argv[1])
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = DistributedDataParallel(nn.Linear(8, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(num_steps):
    optimizer.zero_grad()
    model(torch.full((2, 8), float(rank + step))).sum().backward()
    optimizer.step()
    sys.stdout.write(f"{rank} {step} {os.getpid()} {os.getppid()}\n")
    sys.stdout.flush()
dist.destroy_process_group()
