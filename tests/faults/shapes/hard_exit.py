"""os._exit(7) in the middle: nobody is asked."""
import os

import torch

model = torch.nn.Linear(4, 4)
model(torch.ones(2, 4)).sum().backward()
print("before", flush=True)
os._exit(7)
