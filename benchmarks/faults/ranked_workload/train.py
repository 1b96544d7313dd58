"""Trains the small decoder on two ranks for a few steps; rank 0 prints every loss exactly."""

import argparse
from contextlib import nullcontext

import torch
import torch.distributed as dist
import torch.nn.functional as F
from data import PADDING, VOCABULARY, Sequences, batches
from model import Decoder
from parallel import (
    broadcast_weights,
    clip,
    make_grid,
    own_positions,
    reduce_gradients,
    split_weights,
    sum_over_positions,
)
from torch.nn.parallel import DistributedDataParallel


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--tensor", type=int, default=1)
    parser.add_argument("--sequence", action="store_true")
    parser.add_argument("--ddp", action="store_true")
    parser.add_argument("--bucket-mb", type=float, default=25.0)
    parser.add_argument("--bucket-view", action="store_true")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    dist.init_process_group("gloo")
    grid = make_grid(args.tensor, sequence=args.sequence)
    torch.manual_seed(args.seed + dist.get_rank())
    model = Decoder(VOCABULARY, grid, layers=args.layers, dropout=args.dropout)
    broadcast_weights(model)
    split_weights(model, grid)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.95), weight_decay=0.1)
    if args.sequence:
        sum_over_positions(model, grid)
    trained = model
    if args.ddp:
        trained = DistributedDataParallel(model, bucket_cap_mb=args.bucket_mb, gradient_as_bucket_view=args.bucket_view)
    torch.manual_seed(args.seed + 100 * grid.data_rank + (grid.tensor_rank if args.sequence else 0))
    sequences = Sequences(256, seed=args.seed)
    stream = batches(sequences, size=args.batch, seed=args.seed, part=grid.data_rank, parts=grid.data_size)
    for step in range(args.steps):
        parts = [fetch(stream, grid, size=args.batch) for _ in range(args.accumulate)]
        predicted = sum((part[1:] != PADDING).sum() for part in parts)
        dist.all_reduce(predicted, group=grid.data)
        total = torch.zeros(())
        for number, part in enumerate(parts, start=1):
            targets = own_positions(part[1:], grid).flatten()
            with trained.no_sync() if args.ddp and number < len(parts) else nullcontext():
                logits = trained(part[:-1]).flatten(0, 1)
                loss = F.cross_entropy(logits, targets, ignore_index=PADDING, reduction="sum") / predicted
                scale = grid.data_size if args.ddp else 1
                (loss * scale).backward()
            total += loss.detach()
        if not args.ddp:
            reduce_gradients(model, grid)
        norm = clip(model, grid, largest=1.0)
        optimizer.step()
        optimizer.zero_grad()
        dist.all_reduce(total, group=grid.data)
        if args.sequence:
            dist.all_reduce(total, group=grid.tensor)
        if dist.get_rank() == 0:
            print(f"step {step} loss {total.item().hex()} norm {norm.item().hex()}")
    dist.destroy_process_group()


def fetch(stream, grid, *, size: int) -> torch.Tensor:
    """The next batch, which the first of the tensor-parallel ranks loads for all of them."""
    first = dist.get_global_rank(grid.tensor, 0)
    rows = next(stream) if grid.tensor_rank == 0 else torch.empty(17, size, dtype=torch.int64)
    dist.broadcast(rows, src=first, group=grid.tensor)
    return rows


if __name__ == "__main__":
    main()
