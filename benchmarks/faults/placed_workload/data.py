"""Synthetic sequences of unequal length, left-padded into batches."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

VOCABULARY = 61
LENGTH = 16
PADDING = 0


@dataclass
class Batch:
    tokens: Tensor  # [batch, length] int64, left-padded with PADDING
    mask: Tensor  # [batch, length] bool, False where padded
    targets: Tensor  # [batch, length] int64, PADDING where nothing is predicted


class Sequences:
    """`count` arithmetic sequences modulo the vocabulary: learnable, and no two alike."""

    def __init__(self, count: int, *, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        first = torch.randint(1, VOCABULARY, (count, 1), generator=generator)
        stride = torch.randint(1, 7, (count, 1), generator=generator)
        self.tokens = (first + stride * torch.arange(LENGTH + 1)) % (VOCABULARY - 1) + 1
        self.lengths = torch.randint(LENGTH // 2, LENGTH + 1, (count,), generator=generator)

    def batch(self, rows: Tensor) -> Batch:
        """The sequences `rows`, left-padded to LENGTH."""
        mask = torch.arange(LENGTH) >= LENGTH - self.lengths[rows, None]
        tokens = self.tokens[rows, :-1].masked_fill(~mask, PADDING)
        targets = self.tokens[rows, 1:].masked_fill(~mask, PADDING)
        return Batch(tokens=tokens, mask=mask, targets=targets)


def batches(sequences: Sequences, *, size: int, count: int, seed: int) -> Iterator[Batch]:
    """`count` batches of `size` sequences in an order that `seed` fixes."""
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(sequences.lengths), generator=generator)
    for index in range(count):
        rows = order[torch.arange(index * size, (index + 1) * size) % len(order)]
        yield sequences.batch(rows)
