"""A small Llama of transformers on padded, packed and single batches: every token aligns, inside round-off (CP-27)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import paritrace
from tests.compare.token_workloads import LENGTHS, NAMES, found, samples

pytestmark = pytest.mark.slow
transformers = pytest.importorskip("transformers")
TOKENS = sum(LENGTHS)


def model() -> Any:
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=40,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        attn_implementation="eager",
    )
    return transformers.LlamaForCausalLM(config).eval()


def padded(llama: Any, *, left: bool) -> None:
    longest = max(LENGTHS)
    ids, mask = torch.zeros(4, longest, dtype=torch.long), torch.zeros(4, longest, dtype=torch.long)
    for row, text in enumerate(samples()):
        place = slice(longest - len(text), longest) if left else slice(0, len(text))
        ids[row, place], mask[row, place] = text, 1
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    paritrace.rows(NAMES, input_ids=ids, attention_mask=mask, position_ids=positions)
    llama(input_ids=ids, attention_mask=mask, position_ids=positions)


def packed(llama: Any) -> None:
    ids = torch.cat(samples())[None]
    positions = torch.cat([torch.arange(length) for length in LENGTHS])[None]
    owner = torch.repeat_interleave(torch.arange(4), torch.tensor(LENGTHS))
    allowed = (owner[:, None] == owner) & torch.ones(TOKENS, TOKENS, dtype=torch.bool).tril()
    bias = torch.zeros(1, 1, TOKENS, TOKENS).masked_fill(~allowed, float("-inf"))
    paritrace.rows(NAMES, input_ids=ids, position_ids=positions)  # its resets tell where samples begin
    llama(input_ids=ids, attention_mask=bias, position_ids=positions)


def single(llama: Any) -> None:
    for name, text in zip(NAMES, samples(), strict=True):
        paritrace.rows([name], input_ids=text[None], position_ids=torch.arange(len(text))[None])
        llama(input_ids=text[None])


def generated(llama: Any) -> None:
    """The same tokens with a cache, one at a time: as a rollout engine sees them."""
    for name, text in zip(NAMES, samples(), strict=True):
        cache = None
        for place, token in enumerate(text.tolist()):
            paritrace.rows([name], positions=[[place]], input_ids=[[token]], position_ids=[[place]])
            cache = llama(input_ids=torch.tensor([[token]]), past_key_values=cache, use_cache=True).past_key_values


def test_every_token_aligns_inside_round_off(tmp_path: Path) -> None:
    runs: dict[str, Path] = {}
    workloads: dict[str, Callable[[Any], None]] = {
        "right": lambda llama: padded(llama, left=False),
        "left": lambda llama: padded(llama, left=True),
        "packed": packed,
        "single": single,
        "generated": generated,
    }
    for name, workload in workloads.items():
        with (
            torch.no_grad(),
            paritrace.trace(tmp_path / name, rows=["model.embed_tokens", "model.layers.?", "lm_head"]),
        ):
            workload(model())
        runs[name] = tmp_path / name
    for name in ("left", "packed", "single", "generated"):
        told = found(runs["right"], runs[name])
        outputs = {output.output.partition(":")[0]: output for output in told.outputs}
        assert set(outputs) == {
            "input_ids",
            "position_ids",
            "model.embed_tokens",
            "model.layers.0",
            "model.layers.1",
            "lm_head",
        }, name
        assert all(output.aligned == TOKENS for output in outputs.values()), name
        assert told.tokens == (TOKENS, 0, 0)
        assert told.ambiguous == told.num_choices == 0
        assert outputs["input_ids"].agree == outputs["model.embed_tokens"].agree == TOKENS
        assert told.largest is None or (told.largest.error or 0.0) < 1e-5, name
