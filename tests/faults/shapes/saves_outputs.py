"""Warnings are errors; outputs that are part of the graph are saved, pickled, copied and compared by identity."""
import copy
import io
import pickle
import warnings

import torch

warnings.simplefilter("error")
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
out = model(torch.randn(2, 4))
buffer = io.BytesIO()
torch.save({"out": out, "model": model.state_dict()}, buffer)
print(len(pickle.dumps(out)) > 0, out.grad_fn is not None, out._backward_hooks is None or True)
torch.save(copy.deepcopy(model), io.BytesIO())
print(torch.load(io.BytesIO(buffer.getvalue()))["out"].sum().item().hex())
same = torch.nn.Identity()(out)
print(same is out, type(model(torch.ones(1, 4))).__name__)
