"""Raises in the forward pass of the second step; the traceback names only the user's frames."""
import torch

torch.manual_seed(0)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        if self.calls == 2:
            raise ValueError("the second step fails")
        return self.layer(x)


model = Model()
for _ in range(3):
    loss = model(torch.randn(2, 4)).sum()
    loss.backward()
    print(loss.item().hex())
