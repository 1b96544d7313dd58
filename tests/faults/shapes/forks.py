"""Forks by hand; parent and child both train on and end normally."""
import os
import sys

import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def step(name):
    loss = model(torch.randn(3, 4)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(name, loss.item().hex(), flush=True)


step("before")
child = os.fork()
if child == 0:
    step("child")
    sys.exit(5)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
step("parent")
