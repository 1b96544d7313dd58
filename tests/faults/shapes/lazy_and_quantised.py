"""Lazy modules, quantised modules and tensors, mkldnn tensors, buffers that are None."""
import warnings

import torch
from torch import nn

warnings.simplefilter("ignore")
torch.manual_seed(0)
lazy = nn.Sequential(nn.LazyLinear(4), nn.LazyBatchNorm1d(), nn.Linear(4, 2))
print(lazy(torch.randn(3, 5)).sum().item().hex())
model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))
quantised = torch.ao.quantization.quantize_dynamic(model, {nn.Linear})
print(quantised(torch.randn(3, 8)).sum().item().hex())
tensor = torch.quantize_per_tensor(torch.randn(4), 0.1, 0, torch.qint8)
print((tensor.dequantize() * 2).sum().item().hex())
print(model[0](torch.randn(2, 8)).to_mkldnn().to_dense().shape)
layer = nn.Linear(2, 2, bias=False)
layer.register_buffer("nothing", None)
print(layer(torch.ones(1, 2)).sum().item().hex())
print(torch.empty(3).uniform_().lt(2).all().item(), torch.tensor([]).sum().item())
