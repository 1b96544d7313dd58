"""The user's own profiler, anomaly mode, deterministic algorithms and RNG state saved and restored."""
import random

import numpy
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

torch.use_deterministic_algorithms(True)
torch.manual_seed(0)
random.seed(0)
numpy.random.seed(0)
model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
with profile(activities=[ProfilerActivity.CPU]) as prof, torch.autograd.detect_anomaly(check_nan=True):
    model(torch.randn(2, 4)).sum().backward()
print(sorted({event.key for event in prof.key_averages() if event.key.startswith("aten::addmm")}))
state = torch.get_rng_state()
first = torch.rand(3)
torch.set_rng_state(state)
print(torch.equal(first, torch.rand(3)), random.random(), numpy.random.rand(), torch.rand(1).item().hex())
