"""A tiny Llama of transformers, trained in this process: a pair of attentions for tests that take many inputs."""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

import paritrace

VOCABULARY, LENGTH = 96, 16


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One training. `seed` gives weights and tokens, `draw` the seed of a perturbed run (0: none)."""

    attention: str = "eager"
    eps: float = 1e-6
    dtype: torch.dtype = torch.float32
    seed: int = 0
    layers: int = 2
    steps: int = 1
    levels: tuple[str, ...] = ("module",)
    draw: int = 0


def train(run: Path, recipe: Recipe) -> Path:
    transformers: Any = import_module("transformers")
    torch.manual_seed(recipe.seed)
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=recipe.layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=LENGTH,
        rms_norm_eps=recipe.eps,
        attn_implementation=recipe.attention,
        use_cache=False,
    )
    model = transformers.LlamaForCausalLM(config).to(recipe.dtype).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    with paritrace.trace(run, level=recipe.levels, steps=(0, recipe.steps), diff=False, perturb_seed=recipe.draw):
        for _ in range(recipe.steps):
            tokens = torch.randint(VOCABULARY, (2, LENGTH))
            torch.autograd.backward(model(input_ids=tokens, labels=tokens).loss)
            optimizer.step()
            optimizer.zero_grad()
    return run
