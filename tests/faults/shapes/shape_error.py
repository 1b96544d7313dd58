"""An operator itself raises, and the user catches it."""
import torch

model = torch.nn.Linear(4, 4)
try:
    model(torch.randn(2, 3))
except RuntimeError as error:
    print(type(error).__name__, str(error).splitlines()[0])
print(model(torch.ones(2, 4)).shape)
