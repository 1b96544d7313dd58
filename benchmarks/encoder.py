"""The workload of PF-3 to PF-5: a 4-block encoder (d 256, batch 8 x 128, dropout, AdamW) on one thread."""

from typing import Any

import torch
from torch import nn

DIM, HEADS, BLOCKS, BATCH, TOKENS = 256, 4, 4, 8, 128


class Block(nn.Module):
    """Attention and MLP, each behind a norm and before a dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv, self.out = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.up, self.down = nn.Linear(DIM, 4 * DIM), nn.Linear(4 * DIM, DIM)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.dropout(self.attend(self.norm1(x)))
        hidden = nn.functional.gelu(self.up(self.norm2(x)))
        result: torch.Tensor = x + self.dropout(self.down(hidden))
        return result

    def attend(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, _ = x.shape
        query, key, value = self.qkv(x).view(batch, tokens, 3, HEADS, DIM // HEADS).permute(2, 0, 3, 1, 4)
        scores = query @ key.transpose(-2, -1) / (DIM // HEADS) ** 0.5
        mixed = self.dropout(scores.softmax(-1)) @ value
        result: torch.Tensor = self.out(mixed.transpose(1, 2).reshape(batch, tokens, DIM))
        return result


class Training:
    """The model with its optimizer and one batch; `step` is one training step."""

    def __init__(self) -> None:
        torch.set_num_threads(1)
        torch.manual_seed(0)
        self.model = nn.Sequential(*(Block() for _ in range(BLOCKS)))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, foreach=False)
        self.batch = torch.randn(BATCH, TOKENS, DIM)
        self.target = torch.randn(BATCH, TOKENS, DIM)

    def step(self) -> float:
        self.optimizer.zero_grad()
        loss: Any = nn.functional.mse_loss(self.model(self.batch), self.target)
        loss.backward()
        self.optimizer.step()
        return float(loss.detach())
