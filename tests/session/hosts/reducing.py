"""A loop of two ranks that agree on a sum at every step: what a launcher starts on two hosts."""

import time

import torch
import torch.distributed as dist

import paritrace

dist.init_process_group("gloo")
total = torch.zeros(4)
for step in paritrace.steps(range(1_000_000)):
    given = torch.full((4,), float(step + dist.get_rank()))
    dist.all_reduce(given)
    total = torch.add(total, given)
    time.sleep(0.005)
