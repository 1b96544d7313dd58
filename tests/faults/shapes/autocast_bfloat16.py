"""bfloat16 autocast."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for _ in range(3):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(torch.randn(5, 8)), torch.randint(4, (5,)))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(loss.item().hex())
