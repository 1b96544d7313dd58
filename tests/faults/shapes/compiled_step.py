"""A compiled whole step, a compiled optimizer, a graph break, compile under no_grad, fullgraph."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


@torch.compile
def loss_of(x, y):
    hidden = model(x)
    if hidden.sum().item() > 1e9:
        print("never")
    return (hidden - y).square().mean()


@torch.compile
def update():
    optimizer.step()


for _ in range(3):
    loss = loss_of(torch.randn(4, 8), torch.randn(4, 2))
    loss.backward()
    update()
    optimizer.zero_grad()
    print(loss.item().hex())
with torch.no_grad():
    print(torch.compile(model, fullgraph=True)(torch.ones(1, 8)).sum().item().hex())
print(torch.compile(lambda x: x.sin().cos(), backend="eager")(torch.ones(3)).sum().item().hex())
print(torch.compile(lambda x: x.sin().cos(), backend="aot_eager")(torch.ones(3)).sum().item().hex())
