"""Modules that return dataclasses, dicts, named tuples, None, and take keyword-only and nested arguments."""
from collections import OrderedDict, namedtuple
from dataclasses import dataclass

import torch
from torch import nn

Pair = namedtuple("Pair", "left right")


@dataclass
class Output:
    logits: torch.Tensor
    loss: torch.Tensor | None = None
    extra: dict | None = None


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, inputs, *, scale=None, pairs=()):
        x = self.layer(inputs["x"]) * (1.0 if scale is None else scale)
        return {"y": x, "pair": Pair(x + 1, [x, None, (x * 2,)]), "text": "a", "n": 3}


class Nothing(nn.Module):
    def forward(self, x):
        return None


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.nothing = Inner(), Nothing()
        self.table = nn.ModuleDict(OrderedDict(a=nn.Linear(4, 2)))

    def forward(self, x):
        out = self.inner({"x": x}, scale=torch.tensor(2.0), pairs=[(x, x)])
        self.nothing(x)
        logits = self.table["a"](out["y"] + out["pair"].right[2][0])
        return Output(logits=logits, loss=logits.square().mean(), extra={"hidden": out})


torch.manual_seed(0)
model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    out = model(torch.randn(3, 4))
    out.loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(out.loss.item().hex(), sorted(out.extra["hidden"]))
