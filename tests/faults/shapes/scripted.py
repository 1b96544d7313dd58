"""TorchScript, torch.fx, torch.export and pickled whole models."""
import io
import warnings

import torch
from torch import nn

warnings.simplefilter("ignore")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return torch.relu(self.layer(x)) + 1


torch.manual_seed(0)
net = Net()
x = torch.randn(2, 4)
print(torch.jit.trace(net, x)(x).sum().item().hex())
print(torch.jit.script(net)(x).sum().item().hex())
print(torch.fx.symbolic_trace(net)(x).sum().item().hex())
print(torch.export.export(net, (x,)).module()(x).sum().item().hex())
buffer = io.BytesIO()
torch.save(net, buffer)
buffer.seek(0)
print(torch.load(buffer, weights_only=False)(x).sum().item().hex())
