"""Ends itself with a signal."""
import os
import signal

import torch

model = torch.nn.Linear(4, 4)
model(torch.ones(2, 4)).sum().backward()
print("before", flush=True)
os.kill(os.getpid(), signal.SIGTERM)
