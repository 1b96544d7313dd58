"""Meta-device initialisation, to_empty, tied weights, parametrizations, weight norm, deepcopy and state dicts."""
import copy

import torch
from torch import nn
from torch.nn.utils import parametrizations


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(11, 6)
        self.middle = parametrizations.weight_norm(nn.Linear(6, 6))
        self.head = nn.Linear(6, 11, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, ids):
        return self.head(self.middle(self.embedding(ids)))


with torch.device("meta"):
    shell = nn.Linear(6, 6)
print(shell(torch.ones(2, 6, device="meta")).shape)
torch.manual_seed(0)
shell = shell.to_empty(device="cpu")
shell.reset_parameters()
model = Tied()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for _ in range(2):
    ids = torch.randint(11, (2, 3))
    loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(loss.item().hex())
twin = copy.deepcopy(model)
twin.load_state_dict(model.state_dict())
print(twin(ids).sum().item().hex(), twin.head.weight is twin.embedding.weight)
