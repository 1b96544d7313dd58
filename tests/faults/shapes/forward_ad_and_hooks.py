"""Forward-mode AD, gradients of gradients through modules, gradcheck, tensor hooks that return new gradients."""
import torch
import torch.autograd.forward_ad as fwad
from torch import nn

torch.manual_seed(0)
layer = nn.Linear(3, 2, dtype=torch.float64)
x = torch.randn(2, 3, dtype=torch.float64)
with fwad.dual_level():
    dual = fwad.make_dual(x, torch.ones_like(x))
    print(fwad.unpack_dual(layer(dual)).tangent.sum().item().hex())
x.requires_grad_()
print(torch.autograd.gradcheck(lambda v: layer(v).sin(), (x,)))
print(torch.autograd.gradgradcheck(lambda v: layer(v).sin(), (x,)))
out = layer(x)
handle = out.register_hook(lambda grad: grad * 3)
out.sum().backward()
handle.remove()
print(x.grad.sum().item().hex())
print(torch.autograd.functional.hessian(lambda v: (v**3).sum(), torch.ones(2)).tolist())
