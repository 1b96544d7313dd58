"""Changes directory, replaces and closes streams, reads stdin."""
import io
import os
import sys
import tempfile

import torch

os.chdir(tempfile.mkdtemp())
print(repr(sys.stdin.read()))
old, sys.stdout = sys.stdout, io.StringIO()
print("hidden")
hidden, sys.stdout = sys.stdout, old
model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
print(hidden.getvalue().strip(), flush=True)
sys.stderr.close()
