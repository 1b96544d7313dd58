"""The user counts operators by a dispatch mode around the whole training and around single steps."""
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

torch.manual_seed(0)
model = nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def step():
    loss = model(torch.randn(2, 4)).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(loss.item().hex())


with FlopCounterMode(display=False) as counter:
    for _ in range(4):
        step()
flops = counter.get_total_flops()
step()
print(flops, counter.get_total_flops())
for _ in range(2):
    with FlopCounterMode(display=False) as counter:
        step()
    print(counter.get_total_flops())
