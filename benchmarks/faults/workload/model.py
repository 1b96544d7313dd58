"""A small decoder in today's shape: RMSNorm, rotary positions, grouped keys and values, a gated MLP, a tied head."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

# Shape suffixes: B batch, T length, W width, H heads, G key-value heads, D width of a head.
WIDTH = 32
HEADS = 4
GROUPS = 2
HEAD_WIDTH = WIDTH // HEADS
EPSILON = 1e-6


class RMSNorm(nn.Module):
    def __init__(self, width: int, epsilon: float = EPSILON) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.epsilon = epsilon

    def forward(self, x_BTW: Tensor) -> Tensor:
        variance = x_BTW.pow(2).mean(-1, keepdim=True)
        scale = torch.rsqrt(variance + self.epsilon)
        return x_BTW * scale * self.weight


def rotate(x_BHTD: Tensor, angles_BTD: Tensor) -> Tensor:
    """Rotary positions: pairs of elements are turned by an angle that grows with the position."""
    first, second = x_BHTD.chunk(2, dim=-1)
    cos, sin = angles_BTD.cos()[:, None], angles_BTD.sin()[:, None]
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(WIDTH, HEADS * HEAD_WIDTH, bias=False)
        self.key = nn.Linear(WIDTH, GROUPS * HEAD_WIDTH, bias=False)
        self.value = nn.Linear(WIDTH, GROUPS * HEAD_WIDTH, bias=False)
        self.output = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x_BTW: Tensor, angles_BTD: Tensor, hidden: Tensor) -> Tensor:
        batch, length, _ = x_BTW.shape
        q_BTW = self.query(x_BTW)
        k_BTW = self.key(x_BTW)
        v_BTW = self.value(x_BTW)
        q_BHTD = q_BTW.view(batch, length, HEADS, HEAD_WIDTH).transpose(1, 2)
        k_BGTD = k_BTW.view(batch, length, GROUPS, HEAD_WIDTH).transpose(1, 2)
        v_BGTD = v_BTW.view(batch, length, GROUPS, HEAD_WIDTH).transpose(1, 2)
        q_BHTD = rotate(q_BHTD, angles_BTD)
        k_BGTD = rotate(k_BGTD, angles_BTD)
        k_BHTD = k_BGTD.repeat_interleave(HEADS // GROUPS, dim=1)
        v_BHTD = v_BGTD.repeat_interleave(HEADS // GROUPS, dim=1)
        scores = q_BHTD @ k_BHTD.transpose(-2, -1) * HEAD_WIDTH**-0.5
        scores = scores.masked_fill(hidden, torch.finfo(scores.dtype).min)
        weights = torch.softmax(scores, dim=-1)
        mixed_BHTD = weights @ v_BHTD
        return self.output(mixed_BHTD.transpose(1, 2).reshape(batch, length, WIDTH))


class MLP(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(WIDTH, 2 * WIDTH, bias=False)
        self.up = nn.Linear(WIDTH, 2 * WIDTH, bias=False)
        self.down = nn.Linear(2 * WIDTH, WIDTH, bias=False)

    def forward(self, x_BTW: Tensor) -> Tensor:
        gate = self.gate(x_BTW)
        up = self.up(x_BTW)
        active = F.silu(gate)
        return self.down(active * up)


class Block(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.attention_norm = RMSNorm(WIDTH)
        self.attention = Attention()
        self.mlp_norm = RMSNorm(WIDTH)
        self.mlp = MLP()
        self.dropout = nn.Dropout(dropout)

    def forward(self, x_BTW: Tensor, angles_BTD: Tensor, hidden: Tensor) -> Tensor:
        mixed = self.attention(self.attention_norm(x_BTW), angles_BTD, hidden)
        x_BTW = x_BTW + self.dropout(mixed)
        return x_BTW + self.dropout(self.mlp(self.mlp_norm(x_BTW)))


class Decoder(nn.Module):
    def __init__(self, vocabulary: int, *, layers: int, dropout: float, recompute: bool) -> None:
        super().__init__()
        self.recompute = recompute
        self.embedding = nn.Embedding(vocabulary, WIDTH)
        self.blocks = nn.ModuleList(Block(dropout) for _ in range(layers))
        self.norm = RMSNorm(WIDTH)
        self.head = nn.Linear(WIDTH, vocabulary, bias=False)
        self.head.weight = self.embedding.weight
        self.register_buffer("frequency", 100.0 ** -(torch.arange(0, HEAD_WIDTH, 2) / HEAD_WIDTH))

    def forward(self, tokens_BT: Tensor, mask_BT: Tensor) -> Tensor:
        length = tokens_BT.shape[1]
        positions_BT = (mask_BT.cumsum(-1) - 1).clamp(min=0)
        angles_BTD = positions_BT[:, :, None] * self.frequency
        causal = torch.ones(length, length, dtype=torch.bool).triu(1)
        hidden = causal | ~mask_BT[:, None, None, :]
        x_BTW = self.embedding(tokens_BT)
        for block in self.blocks:
            x_BTW = self.call(block, x_BTW, angles_BTD, hidden)
        return self.head(self.norm(x_BTW))

    def call(self, block: nn.Module, *inputs: Tensor) -> Tensor:
        """One block, recomputed in the backward pass if so wished."""
        if self.recompute:
            return checkpoint(block, *inputs, use_reentrant=False, preserve_rng_state=True)
        return block(*inputs)
