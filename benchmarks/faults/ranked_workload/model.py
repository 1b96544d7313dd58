"""A small decoder whose attention and MLP are split over tensor-parallel ranks, sequence first."""

import torch
import torch.nn.functional as F
from data import LENGTH
from parallel import Grid, enter, leave, own_positions
from torch import Tensor, nn

# Shape suffixes: T length, B batch, W width, H heads of this rank, D width of a head.
WIDTH = 32
HEADS = 4
HEAD_WIDTH = WIDTH // HEADS


class Attention(nn.Module):
    def __init__(self, grid: Grid) -> None:
        super().__init__()
        self.grid = grid
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.output = nn.Linear(WIDTH, WIDTH)

    def forward(self, x_TBW: Tensor) -> Tensor:
        x_TBW = enter(x_TBW, self.grid)
        length, batch, _ = x_TBW.shape
        mixed = self.qkv(x_TBW).view(length, batch, -1, 3 * HEAD_WIDTH)
        q_BHTD, k_BHTD, v_BHTD = mixed.permute(1, 2, 0, 3).chunk(3, dim=-1)
        scores = q_BHTD @ k_BHTD.transpose(-2, -1) * HEAD_WIDTH**-0.5
        future = torch.ones(length, length, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(future, float("-inf")).softmax(dim=-1)
        heads_TBW = (weights @ v_BHTD).permute(2, 0, 1, 3).reshape(length, batch, -1)
        part_TBW = F.linear(heads_TBW, self.output.weight)
        return leave(part_TBW, self.grid) + self.output.bias


class MLP(nn.Module):
    def __init__(self, grid: Grid) -> None:
        super().__init__()
        self.grid = grid
        self.up = nn.Linear(WIDTH, 2 * WIDTH)
        self.down = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x_TBW: Tensor) -> Tensor:
        active = F.gelu(self.up(enter(x_TBW, self.grid)))
        part_TBW = F.linear(active, self.down.weight)
        return leave(part_TBW, self.grid) + self.down.bias


class Block(nn.Module):
    def __init__(self, grid: Grid, dropout: float) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(WIDTH)
        self.attention = Attention(grid)
        self.mlp_norm = nn.LayerNorm(WIDTH)
        self.mlp = MLP(grid)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x_TBW: Tensor) -> Tensor:
        mixed_TBW = self.attention(self.attention_norm(x_TBW))
        x_TBW = x_TBW + self.dropout(mixed_TBW)
        made_TBW = self.mlp(self.mlp_norm(x_TBW))
        return x_TBW + self.dropout(made_TBW)


class Decoder(nn.Module):
    """Logits of this rank's positions."""

    def __init__(self, vocabulary: int, grid: Grid, *, layers: int, dropout: float) -> None:
        super().__init__()
        self.grid = grid
        self.embedding = nn.Embedding(vocabulary, WIDTH)
        self.positions = nn.Parameter(torch.randn(LENGTH, 1, WIDTH) * 0.1)
        self.blocks = nn.ModuleList(Block(grid, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, vocabulary, bias=False)

    def forward(self, tokens_TB: Tensor) -> Tensor:
        x_TBW = self.embedding(own_positions(tokens_TB, self.grid))
        x_TBW = x_TBW + own_positions(self.positions, self.grid)
        for block in self.blocks:
            x_TBW = block(x_TBW)
        return self.head(self.norm(x_TBW))
