"""In-place activations, +=, an in-place write into the module's own input and output."""
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 8)
        self.act = nn.ReLU(inplace=True)
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        x = self.act(self.first(x))
        y = self.second(x)
        y += x
        y[:, 0] = 0
        self.seen += 1
        return self.act(y)


torch.manual_seed(0)
model = nn.Sequential(Model(), nn.Linear(8, 8), nn.Hardswish(inplace=True), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    loss = model(torch.randn(3, 4)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(loss.item().hex(), model[0].seen.item())
