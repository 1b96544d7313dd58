"""A small transformer that reads bytes, and the steps of its training, for the plain script and the resident alike."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

TEXTS = Path(__file__).parent / "texts"
BYTES = 256


@dataclass(frozen=True)
class Settings:
    """What a training is made of. `batch` is that of all ranks together."""

    width: int = 64
    layers: int = 2
    heads: int = 4
    length: int = 32
    batch: int = 8
    dropout: float = 0.1
    lr: float = 1e-3
    weight_decay: float = 0.01
    seed: int = 0


class Block(nn.Module):
    def __init__(self, settings: Settings) -> None:
        super().__init__()
        width = settings.width
        self.heads, self.dropout = settings.heads, nn.Dropout(settings.dropout)
        self.attention_norm, self.mlp_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.attention_norm(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.dropout(self.output(mixed.transpose(1, 2).flatten(2)))
        return x + self.dropout(self.down(F.gelu(self.up(self.mlp_norm(x)))))


class Decoder(nn.Module):
    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.embedding = nn.Embedding(BYTES, settings.width)
        self.blocks = nn.Sequential(*(Block(settings) for _ in range(settings.layers)))
        self.head = nn.Linear(settings.width, BYTES)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.blocks(self.embedding(tokens)))


@dataclass
class Training:
    """What one rank holds."""

    settings: Settings
    model: Decoder
    ddp: DistributedDataParallel
    optimizer: torch.optim.AdamW


def read_text(name: str) -> Tensor:
    """The bytes of a text of this folder."""
    return torch.tensor(list((TEXTS / f"{name}.txt").read_bytes()))


def begin(settings: Settings) -> Training:
    """The same weights on every rank; from then on every rank draws its dropout from a stream of its own."""
    torch.manual_seed(settings.seed)
    model = Decoder(settings)
    ddp = DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(ddp.parameters(), lr=settings.lr, weight_decay=settings.weight_decay)
    torch.manual_seed(settings.seed + 1 + dist.get_rank())
    return Training(settings, model, ddp, optimizer)


def batch_of(text: Tensor, settings: Settings, step: int) -> Tensor:
    """This rank's share of the step's batch. It depends on seed, step and rank alone, so a step can be taken again."""
    rank, num_ranks = dist.get_rank(), dist.get_world_size()
    drawn = torch.Generator().manual_seed((settings.seed * 1_000_003 + step) * num_ranks + rank)
    share = settings.batch // num_ranks
    starts = torch.randint(len(text) - settings.length, (share, 1), generator=drawn)
    return text[starts + torch.arange(settings.length + 1)]


def take_step(training: Training, text: Tensor, step: int) -> float:
    """One step of the training; the loss is that of this rank's share."""
    tokens = batch_of(text, training.settings, step)
    logits = training.ddp(tokens[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    loss.backward()
    training.optimizer.step()
    training.optimizer.zero_grad()
    return loss.item()


def digest_of(model: nn.Module) -> str:
    """SHA-256 of the weights, bit by bit."""
    found = hashlib.sha256()
    for name, value in model.state_dict().items():
        found.update(name.encode() + value.contiguous().view(torch.uint8).numpy().tobytes())
    return found.hexdigest()
