"""A small decoder in today's shape whose parts know their layer and the pass they are in, so that a mistake can be put
into one layer and one pass: RMSNorm of 1 + weight, rotary positions, grouped keys and values, a cache of them, a gated
MLP with an optional 8-bit input, a tied head."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

# Shape suffixes: B batch, T length, S length with what is cached, W width, H heads, G key-value heads, D head width.
WIDTH = 32
HEADS = 4
GROUPS = 2
HEAD_WIDTH = WIDTH // HEADS
EPSILON = 1e-6
EIGHT_BITS = torch.float8_e4m3fn
LARGEST = torch.finfo(EIGHT_BITS).max


class Now:
    """The forward pass that is running: its number counts micro-batches of all steps."""

    number = 0


def widened(x: Tensor) -> Tensor:
    """At least float32: what sums are made in."""
    return x if x.dtype is torch.float64 else x.float()


class RMSNorm(nn.Module):
    def __init__(self, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.weight = nn.Parameter(torch.randn(WIDTH) * 0.1)

    def forward(self, x_BTW: Tensor) -> Tensor:
        epsilon = EPSILON
        wide = widened(x_BTW)
        variance = wide.pow(2).mean(-1, keepdim=True)
        normed = wide * torch.rsqrt(variance + epsilon)
        scaled = normed * (1.0 + widened(self.weight))
        return scaled.to(x_BTW.dtype)


def rotate(x_BHTD: Tensor, angles_BTD: Tensor, *, layer: int) -> Tensor:  # noqa: ARG001
    """Rotary positions: pairs of elements are turned by an angle that grows with the position."""
    first, second = x_BHTD.chunk(2, dim=-1)
    cos, sin = angles_BTD.cos()[:, None].to(x_BHTD.dtype), angles_BTD.sin()[:, None].to(x_BHTD.dtype)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


class Attention(nn.Module):
    def __init__(self, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.query = nn.Linear(WIDTH, HEADS * HEAD_WIDTH, bias=False)
        self.key = nn.Linear(WIDTH, GROUPS * HEAD_WIDTH, bias=False)
        self.value = nn.Linear(WIDTH, GROUPS * HEAD_WIDTH, bias=False)
        self.output = nn.Linear(WIDTH, WIDTH, bias=False)
        self.cached: list[tuple[Tensor, Tensor]] | None = None

    def forward(self, x_BTW: Tensor, angles_BTD: Tensor, hidden: Tensor) -> Tensor:
        batch, length, _ = x_BTW.shape
        q_BTW = self.query(x_BTW)
        k_BTW = self.key(x_BTW)
        v_BTW = self.value(x_BTW)
        q_BHTD = q_BTW.view(batch, length, HEADS, HEAD_WIDTH).transpose(1, 2)
        k_BGTD = k_BTW.view(batch, length, GROUPS, HEAD_WIDTH).transpose(1, 2)
        v_BGSD = v_BTW.view(batch, length, GROUPS, HEAD_WIDTH).transpose(1, 2)
        q_BHTD = rotate(q_BHTD, angles_BTD, layer=self.layer)
        k_BGSD = rotate(k_BGTD, angles_BTD, layer=self.layer)
        if self.cached is not None:
            k_BGSD, v_BGSD = self.joined(k_BGSD, v_BGSD, self.cached)
        k_BHSD = k_BGSD.repeat_interleave(HEADS // GROUPS, dim=1)
        v_BHSD = v_BGSD.repeat_interleave(HEADS // GROUPS, dim=1)
        mixed_BHTD = attend(q_BHTD, k_BHSD, v_BHSD, hidden, layer=self.layer)
        merged_BTW = mixed_BHTD.transpose(1, 2).reshape(batch, length, WIDTH)
        return self.output(merged_BTW)

    def joined(self, k_BGTD: Tensor, v_BGTD: Tensor, cached: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        """The keys and values so far, which are kept for the next part."""
        if cached:
            k_BGTD = torch.cat([cached[-1][0], k_BGTD], dim=2)
            v_BGTD = torch.cat([cached[-1][1], v_BGTD], dim=2)
        cached.append((k_BGTD, v_BGTD))
        return cached[-1]


def attend(q_BHTD: Tensor, k_BHSD: Tensor, v_BHSD: Tensor, hidden: Tensor, *, layer: int) -> Tensor:  # noqa: ARG001
    scores = q_BHTD @ k_BHSD.transpose(-2, -1) * HEAD_WIDTH**-0.5
    scores = scores.masked_fill(hidden, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1)
    return weights @ v_BHSD


class Quantizer(nn.Module):
    """Rounds to 8 bits by the largest value of the pass before (delayed scaling); gradients pass straight through."""

    def __init__(self, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.register_buffer("largest", torch.ones(()))

    def forward(self, x_BTW: Tensor) -> Tensor:
        scale = self.largest.to(x_BTW.dtype) / LARGEST
        rounded = ((x_BTW / scale).clamp(-LARGEST, LARGEST).detach().to(EIGHT_BITS).to(x_BTW.dtype) * scale).detach()
        self.largest.copy_(x_BTW.detach().abs().amax())
        return x_BTW + (rounded - x_BTW).detach()


class MLP(nn.Module):
    def __init__(self, layer: int, *, quantized: bool) -> None:
        super().__init__()
        self.layer = layer
        self.gate = nn.Linear(WIDTH, 2 * WIDTH, bias=False)
        self.up = nn.Linear(WIDTH, 2 * WIDTH, bias=False)
        self.down = nn.Linear(2 * WIDTH, WIDTH, bias=False)
        self.quantizer = Quantizer(layer) if quantized else nn.Identity()

    def forward(self, x_BTW: Tensor) -> Tensor:
        gate = self.gate(x_BTW)
        up = self.up(x_BTW)
        active = F.silu(gate)
        made = self.quantizer(active * up)
        return self.down(made)


class Block(nn.Module):
    def __init__(self, layer: int, *, dropout: float, quantized: bool) -> None:
        super().__init__()
        self.layer = layer
        self.attention_norm = RMSNorm(layer)
        self.attention = Attention(layer)
        self.mlp_norm = RMSNorm(layer)
        self.mlp = MLP(layer, quantized=quantized)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x_BTW: Tensor, angles_BTD: Tensor, hidden: Tensor) -> Tensor:
        normed = self.attention_norm(x_BTW)
        mixed = self.attention(normed, angles_BTD, hidden)
        x_BTW = x_BTW + self.dropout(mixed)
        normed = self.mlp_norm(x_BTW)
        made = self.mlp(normed)
        return x_BTW + self.dropout(made)


class Decoder(nn.Module):
    def __init__(self, vocabulary: int, *, layers: int, dropout: float, recompute: bool, quantized: bool) -> None:
        super().__init__()
        self.recompute = recompute
        self.embedding = nn.Embedding(vocabulary, WIDTH)
        nn.init.normal_(self.embedding.weight, std=WIDTH**-0.5)
        self.blocks = nn.ModuleList(Block(layer, dropout=dropout, quantized=quantized) for layer in range(layers))
        self.norm = RMSNorm(layers)
        self.head = nn.Linear(WIDTH, vocabulary, bias=False)
        self.head.weight = self.embedding.weight
        self.register_buffer("frequency", 100.0 ** -(torch.arange(0, HEAD_WIDTH, 2) / HEAD_WIDTH))

    def forward(self, tokens_BT: Tensor, mask_BT: Tensor, *, parts: int) -> Tensor:
        """Logits; with several parts the later ones read the keys and values of the earlier from a cache."""
        positions_BT = (mask_BT.cumsum(-1) - 1).clamp(min=0)
        for block in self.blocks:
            block.attention.cached = [] if parts > 1 else None
        size = tokens_BT.shape[1] // parts
        made = [self.part(tokens_BT, mask_BT, positions_BT, part * size, part * size + size) for part in range(parts)]
        return torch.cat(made, dim=1) if parts > 1 else made[0]

    def part(self, tokens_BT: Tensor, mask_BT: Tensor, positions_BT: Tensor, start: int, end: int) -> Tensor:
        """Logits of the positions from `start` to `end`."""
        angles_BTD = positions_BT[:, start:end, None] * self.frequency
        causal = torch.ones(end, end, dtype=torch.bool).triu(1)[start:end]
        hidden = causal | ~mask_BT[:, None, None, :end]
        x_BTW = self.embedding(tokens_BT[:, start:end])
        x_BTW = x_BTW * WIDTH**0.5
        for block in self.blocks:
            x_BTW = self.call(block, x_BTW, angles_BTD, hidden)
        return self.head(self.norm(x_BTW))

    def call(self, block: nn.Module, *inputs: Tensor) -> Tensor:
        """One block, recomputed in the backward pass if so wished."""
        if self.recompute:
            return checkpoint(block, *inputs, use_reentrant=False, preserve_rng_state=True)
        return block(*inputs)
