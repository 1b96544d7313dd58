"""Trains a small Llama with random weights for a few steps: the porting engineer's question in miniature.

The same recipe with `--attn eager` and `--attn sdpa` runs two implementations of the attention; `--eps` is the epsilon
of the norms. Needs `pip install torch transformers`; nothing is downloaded.
"""

import argparse

import torch
from transformers import LlamaConfig, LlamaForCausalLM

VOCABULARY = 128
LENGTH = 24


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--attn", choices=("eager", "sdpa"), default="eager", help="implementation of the attention")
    parser.add_argument("--eps", type=float, default=1e-6, help="epsilon of the RMS norms")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def build(args: argparse.Namespace) -> LlamaForCausalLM:
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=args.layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=LENGTH,
        rms_norm_eps=args.eps,
        attn_implementation=args.attn,
        use_cache=False,
    )
    return LlamaForCausalLM(config).train()


def main() -> None:
    args = arguments()
    torch.manual_seed(args.seed)
    model = build(args)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    generator = torch.Generator().manual_seed(args.seed)
    for step in range(args.steps):
        tokens = torch.randint(VOCABULARY, (2, LENGTH), generator=generator)
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step} loss {loss.item():.9f}")


if __name__ == "__main__":
    main()
