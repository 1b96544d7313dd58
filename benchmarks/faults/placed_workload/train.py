"""Trains the small decoder for a few steps and prints every loss exactly."""

import argparse

import torch
import torch.nn.functional as F
from data import PADDING, VOCABULARY, Sequences, batches
from model import Decoder, Now, widened

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float64": torch.float64}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--dtype", choices=DTYPES, default="float32")
    parser.add_argument("--recompute", action="store_true")
    parser.add_argument("--quantized", action="store_true")
    parser.add_argument("--parts", type=int, default=1)
    return parser.parse_args()


def main() -> None:
    args = arguments()
    torch.manual_seed(args.seed)
    model = Decoder(
        VOCABULARY, layers=args.layers, dropout=args.dropout, recompute=args.recompute, quantized=args.quantized
    )
    model = model.to(DTYPES[args.dtype])
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.95), weight_decay=0.1, foreach=True)
    torch.manual_seed(args.seed)
    sequences = Sequences(256, seed=args.seed)
    stream = batches(sequences, size=args.batch, count=args.steps * args.accumulate, seed=args.seed)
    for step in range(args.steps):
        parts = [next(stream) for _ in range(args.accumulate)]
        predicted = sum(int((part.targets != PADDING).sum()) for part in parts)
        total = 0.0
        for number, part in enumerate(parts):
            Now.number = step * args.accumulate + number
            logits = widened(model(part.tokens, part.mask, parts=args.parts))
            flat, targets = logits.flatten(0, 1), part.targets.flatten()
            loss = F.cross_entropy(flat, targets, ignore_index=PADDING, reduction="sum") / predicted
            loss.backward()
            total += loss.item()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step} loss {total.hex()}")


if __name__ == "__main__":
    main()
