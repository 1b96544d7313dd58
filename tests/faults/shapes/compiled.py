"""torch.compile of a module and of a function, with gradients."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4))
compiled = torch.compile(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for _ in range(3):
    loss = torch.nn.functional.cross_entropy(compiled(torch.randn(8, 16)), torch.randint(4, (8,)))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(loss.item().hex())
square = torch.compile(lambda x: torch.softmax(x * 1.7, -1).cumsum(-1).sin())
print(square(torch.randn(5, 40)).sum().item().hex())
