"""Synthetic sequences of unequal length, dealt out to the data-parallel ranks."""

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

VOCABULARY = 61
LENGTH = 16
PADDING = 0


class Sequences(Dataset[Tensor]):
    """`count` arithmetic sequences modulo the vocabulary, each of one token more than LENGTH, padded on the right."""

    def __init__(self, count: int, *, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        first = torch.randint(1, VOCABULARY, (count, 1), generator=generator)
        stride = torch.randint(1, 7, (count, 1), generator=generator)
        tokens = (first + stride * torch.arange(LENGTH + 1)) % (VOCABULARY - 1) + 1
        lengths = torch.randint(LENGTH // 2, LENGTH + 2, (count, 1), generator=generator)
        self.tokens = tokens.masked_fill(torch.arange(LENGTH + 1) >= lengths, PADDING)

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, index: int) -> Tensor:
        return self.tokens[index]


def batches(sequences: Sequences, *, size: int, seed: int, part: int, parts: int) -> Iterator[Tensor]:
    """Batches [LENGTH + 1, size] of this part's share of the sequences, in an order that `seed` fixes."""
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(sequences), generator=generator).tolist()
    mine = order[part::parts]
    loader = DataLoader(sequences, batch_size=size, sampler=mine, generator=generator)
    for rows in loader:
        yield rows.t().contiguous()
