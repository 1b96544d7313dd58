"""float16 with a GradScaler, one step with an overflow that is skipped."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for step in range(4):
    loss = model(torch.randn(5, 8)).square().mean()
    if step == 2:
        loss = loss * float("inf")
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    print(loss.item(), scaler.get_scale(), model.weight.sum().item().hex())
