"""Nested tensors, vmap, grad, jacrev, functional_call, jvp."""
import warnings

import torch
from torch import nn
from torch.func import functional_call, grad, jacrev, jvp, vmap

warnings.simplefilter("ignore")
torch.manual_seed(0)
model = nn.Linear(4, 2)
parameters = dict(model.named_parameters())


def loss(parameters, x):
    return functional_call(model, parameters, (x,)).square().sum()


x = torch.randn(3, 4)
per_sample = vmap(grad(loss), in_dims=(None, 0))(parameters, x)
print(per_sample["weight"].shape, per_sample["weight"].sum().item().hex())
print(jacrev(lambda v: model(v).sum())(x[0]).sum().item().hex())
print(jvp(torch.sin, (x,), (torch.ones_like(x),))[1].sum().item().hex())
nested = torch.nested.nested_tensor([torch.randn(2, 4), torch.randn(3, 4)])
print(model(nested).to_padded_tensor(0.0).sum().item().hex())
jagged = torch.nested.nested_tensor([torch.randn(2, 4), torch.randn(3, 4)], layout=torch.jagged)
print((jagged * 2).values().sum().item().hex())
hessian = torch.func.hessian(lambda v: (v**3).sum())(torch.ones(2))
print(hessian.tolist())
