"""A small decoder trained by two ranks with DDP; `--leave-out NAME` keeps one parameter out of the reduction."""

import argparse
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

WIDTH, HEADS, VOCABULARY, LENGTH, LAYERS, BATCH = 64, 4, 96, 32, 2, 4
BUCKET_BYTES = 48 * 1024  # small, so that a small model has several buckets


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention_norm, self.mlp_norm = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.output = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = self.qkv(self.attention_norm(x)).unflatten(-1, (3, HEADS, WIDTH // HEADS)).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.output(mixed.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.mlp_norm(x))))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens):
        return self.head(self.blocks(self.embedding(tokens)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--leave-out", help="a parameter that DDP is told not to reduce")
    options = parser.parse_args()

    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = Decoder()
    if options.leave_out:
        DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(model, [options.leave_out])
    ddp = DistributedDataParallel(model, bucket_cap_mb=BUCKET_BYTES / 2**20)
    optimizer = torch.optim.AdamW(ddp.parameters(), lr=1e-3)

    data = torch.Generator().manual_seed(1 + dist.get_rank())  # each rank has sequences of its own
    for step in range(options.steps):
        first = torch.randint(VOCABULARY, (BATCH, 1), generator=data)
        tokens = (first + 3 * torch.arange(LENGTH + 1)) % VOCABULARY
        logits = ddp(tokens[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"rank {os.environ['RANK']}  step {step}  loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
