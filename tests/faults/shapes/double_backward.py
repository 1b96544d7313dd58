"""create_graph, autograd.grad, backward through several roots with given gradients, hooks after accumulation."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 5), nn.Softplus(), nn.Linear(5, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
counts = []
for parameter in model.parameters():
    parameter.register_post_accumulate_grad_hook(lambda p: counts.append(p.numel()))
for _ in range(2):
    x = torch.randn(4, 3, requires_grad=True)
    (slope,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
    penalty = (slope.norm(dim=1) - 1).square().mean()
    a, b = model(x).mean(), penalty
    torch.autograd.backward([a, b], [torch.tensor(1.0), torch.tensor(0.5)])
    optimizer.step()
    optimizer.zero_grad()
    print(a.item().hex(), b.item().hex(), counts)
torch.autograd.backward(value for value in [model(x).sum()])
print(model[0].weight.grad.sum().item().hex())
