"""Sets the environment before it imports torch, as many scripts do; thread counts change bits."""
import os
import sys

print("torch" in sys.modules, "numpy" in sys.modules)
os.environ["OMP_NUM_THREADS"] = "2"
os.environ["ATEN_CPU_CAPABILITY"] = "default"

import torch

print(torch.get_num_threads(), torch.backends.cpu.get_cpu_capability())
torch.manual_seed(0)
print(torch.nn.Linear(64, 64)(torch.randn(512, 64)).softmax(-1).sum(0).square().sum().item().hex())
