"""The user has dispatch and function modes, tensor subclasses, module hooks and saved-tensor hooks of their own."""
import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode


class Names(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


class Functions(TorchFunctionMode):
    count = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        Functions.count += 1
        return func(*args, **(kwargs or {}))


class Tagged(torch.Tensor):
    pass


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
model[0].register_forward_hook(lambda module, inputs, output: output * 2)
model.register_forward_pre_hook(lambda module, inputs: (inputs[0] + 1,))
model[0].register_full_backward_hook(lambda module, grad_in, grad_out: None)
with Names() as names:
    loss = model(torch.randn(2, 4)).sum()
    loss.backward()
print(names.names, loss.item().hex())
with Functions():
    print(model(torch.randn(2, 4)).sum().item().hex())
print(Functions.count)
tagged = torch.randn(2, 4).as_subclass(Tagged)
print(type(model(tagged)).__name__, type(tagged + 1).__name__)
with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
    y = model(torch.randn(2, 4)).square().sum()
y.backward()
print(model[0].weight.grad.sum().item().hex())
with torch.autograd.graph.save_on_cpu():
    model(torch.randn(2, 4)).square().sum().backward()
print(model[0].weight.grad.sum().item().hex())
