"""Frozen parts, parameter groups added later, EMA averages, gradient accumulation, optimizer recreated mid-run."""
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel

torch.manual_seed(0)
body, head = nn.Sequential(nn.Linear(4, 8), nn.ReLU()), nn.Linear(8, 2)
body.requires_grad_(False)
model = nn.Sequential(body, head)
average = AveragedModel(model)
optimizer = torch.optim.AdamW(head.parameters(), lr=0.01)
for step in range(6):
    loss = model(torch.randn(3, 4)).square().mean() / 2
    loss.backward()
    if step % 2:
        optimizer.step()
        optimizer.zero_grad()
        average.update_parameters(model)
    if step == 3:
        body.requires_grad_(True)
        optimizer.add_param_group({"params": body.parameters(), "lr": 0.001})
    print(loss.item().hex())
print(sum(p.sum() for p in average.parameters()).item().hex())
