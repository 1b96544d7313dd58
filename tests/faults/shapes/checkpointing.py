"""Activation checkpointing in both modes, with dropout."""
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
block = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Dropout(0.3), nn.Linear(8, 8))
head = nn.Linear(8, 2)
optimizer = torch.optim.AdamW([*block.parameters(), *head.parameters()], lr=1e-2)
for reentrant in (True, False):
    for _ in range(2):
        x = torch.randn(4, 8, requires_grad=True)
        loss = head(checkpoint(block, x, use_reentrant=reentrant)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(reentrant, loss.item().hex(), x.grad.sum().item().hex())
