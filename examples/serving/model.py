"""A small decoder with random weights and a key-value cache: bytes in, bytes out, nothing is downloaded."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

VOCABULARY, WIDTH, HEADS, LAYERS, LONGEST = 256, 64, 4, 2, 512
Cache = list[tuple[Tensor, Tensor]]  # of each layer: keys and values (heads, positions, width of a head)


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.before, self.after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.mixed, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor, caches: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        """Takes rows of several sequences, one after the other; `caches` has one entry for each."""
        q, k, v = self.mixed(self.before(x)).view(len(x), 3, HEADS, WIDTH // HEADS).unbind(1)
        lengths = [len(x) // len(caches)] * len(caches)
        mixed, grown = [], []
        for ours, (keys, values) in zip(zip(*(t.split(lengths) for t in (q, k, v)), strict=True), caches, strict=True):
            query, key, value = (t.transpose(0, 1) for t in ours)
            whole = (torch.cat([keys, key], 1), torch.cat([values, value], 1))
            old = keys.shape[1]
            seen = torch.ones(query.shape[1], old + query.shape[1], dtype=torch.bool).tril(old)
            mixed.append(F.scaled_dot_product_attention(query, *whole, attn_mask=seen).transpose(0, 1))
            grown.append(whole)
        x = x + self.out(torch.cat(mixed).reshape(len(x), WIDTH))
        return x + self.down(F.gelu(self.up(self.after(x)))), grown


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LONGEST, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY)

    @torch.no_grad()
    def forward(self, tokens: list[list[int]], caches: list[Cache]) -> list[int]:
        """Returns the next token of each sequence; all bring equally many new ones, and their caches grow by them."""
        flat = torch.tensor([token for one in tokens for token in one])
        places = torch.cat(
            [torch.arange(len(one)) + cache[0][0].shape[1] for one, cache in zip(tokens, caches, strict=True)]
        )
        x = self.tokens(flat) + self.places(places)
        for number, layer in enumerate(self.layers):
            x, grown = layer(x, [cache[number] for cache in caches])
            for cache, pair in zip(caches, grown, strict=True):
                cache[number] = pair
        last = x.view(len(tokens), -1, WIDTH)[:, -1]
        return self.head(self.norm(last)).argmax(-1).tolist()


def empty_cache() -> Cache:
    return [(torch.empty(HEADS, 0, WIDTH // HEADS), torch.empty(HEADS, 0, WIDTH // HEADS)) for _ in range(LAYERS)]
