"""autograd.Function with saved tensors, non-tensor arguments, mark_dirty and once_differentiable; hooks on tensors."""
import torch
from torch.autograd.function import once_differentiable


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x * factor, x.sum()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad, grad_sum):
        (x,) = ctx.saved_tensors
        return grad * ctx.factor + grad_sum * torch.ones_like(x), None


class AddOne(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.add_(1)

    @staticmethod
    def backward(ctx, grad):
        return grad


torch.manual_seed(0)
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
seen = []
for _ in range(2):
    hidden = model(torch.randn(2, 4))
    hidden.register_hook(lambda grad: grad * 2)
    scaled, total = Scale.apply(hidden, 3.0)
    scaled.retain_grad()
    out = AddOne.apply(scaled * 1)
    (out.square().mean() + total).backward()
    seen.append(scaled.grad.sum().item())
    optimizer.step()
    optimizer.zero_grad()
    print(out.sum().item().hex(), seen[-1].hex())
