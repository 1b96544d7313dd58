"""A small Llama of transformers, and the same by hand: other names, fused projections, the same weights (CP-5).

`ported_llama.py original WEIGHTS` trains two steps and writes what it began with; `ported_llama.py port WEIGHTS` trains
from that.
"""

import sys

import torch
from torch import Tensor, nn
from torch.nn import functional

HIDDEN, HEADS, GROUPS, MIDDLE, WORDS, LAYERS = 32, 4, 2, 48, 64, 2
SIZE = HIDDEN // HEADS
IDS = torch.arange(16).reshape(2, 8) % WORDS


class Norm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(HIDDEN))

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


def rotated(x: Tensor) -> Tensor:
    frequencies = 1.0 / (10000.0 ** (torch.arange(0, SIZE, 2).float() / SIZE))
    angles = torch.outer(torch.arange(x.shape[2]).float(), frequencies)
    angles = torch.cat((angles, angles), -1)
    half = torch.cat((-x[..., SIZE // 2 :], x[..., : SIZE // 2]), -1)
    return x * angles.cos() + half * angles.sin()


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(HIDDEN, HIDDEN + 2 * GROUPS * SIZE, bias=False)
        self.dense = nn.Linear(HIDDEN, HIDDEN, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        split = self.qkv(x).split([HIDDEN, GROUPS * SIZE, GROUPS * SIZE], -1)
        q, k, v = (part.view(batch, length, -1, SIZE).transpose(1, 2) for part in split)
        q, k = rotated(q), rotated(k)
        k, v = (part.repeat_interleave(HEADS // GROUPS, 1) for part in (k, v))
        scores = q @ k.transpose(-1, -2) * SIZE**-0.5
        masked = scores.masked_fill(torch.ones(length, length).triu(1).bool(), torch.finfo(scores.dtype).min)
        mixed: Tensor = self.dense((masked.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, HIDDEN))
        return mixed


class Feed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(HIDDEN, 2 * MIDDLE, bias=False)
        self.fc2 = nn.Linear(MIDDLE, HIDDEN, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        gate, up = self.fc1(x).chunk(2, -1)
        out: Tensor = self.fc2(functional.silu(gate) * up)
        return out


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.ln1, self.attention, self.ln2, self.mlp = Norm(), Attention(), Norm(), Feed()

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.ln1(x))
        out: Tensor = x + self.mlp(self.ln2(x))
        return out


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.final_norm = Norm()

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        out: Tensor = self.final_norm(x)
        return out


class Port(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(WORDS, HIDDEN)
        self.decoder = Decoder()
        self.output_layer = nn.Linear(HIDDEN, WORDS, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        out: Tensor = self.output_layer(self.decoder(self.word_embeddings(ids)))
        return out


def ported(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The original's weights under the names of the port, projections fused."""
    found = {
        "word_embeddings.weight": weights["model.embed_tokens.weight"],
        "output_layer.weight": weights["lm_head.weight"],
        "decoder.final_norm.weight": weights["model.norm.weight"],
    }
    for number in range(LAYERS):
        old, new = f"model.layers.{number}.", f"decoder.blocks.{number}."
        fused = {
            "attention.qkv": [f"self_attn.{name}_proj" for name in "qkv"],
            "mlp.fc1": ["mlp.gate_proj", "mlp.up_proj"],
            "attention.dense": ["self_attn.o_proj"],
            "mlp.fc2": ["mlp.down_proj"],
            "ln1": ["input_layernorm"],
            "ln2": ["post_attention_layernorm"],
        }
        for name, parts in fused.items():
            found[f"{new}{name}.weight"] = torch.cat([weights[f"{old}{part}.weight"] for part in parts])
    return found


def original(place: str) -> nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    model: nn.Module = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=WORDS,
            hidden_size=HIDDEN,
            intermediate_size=MIDDLE,
            num_hidden_layers=LAYERS,
            num_attention_heads=HEADS,
            num_key_value_heads=GROUPS,
            tie_word_embeddings=False,
        )
    )
    torch.save(model.state_dict(), place)
    return model


def port(place: str) -> nn.Module:
    model = Port()
    model.load_state_dict(ported(torch.load(place)))
    return model


def main(kind: str, place: str) -> None:
    torch.manual_seed(0)
    model = original(place) if kind == "original" else port(place)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        logits = model(IDS) if kind == "port" else model(IDS, use_cache=False).logits
        loss = functional.cross_entropy(logits[:, :-1].reshape(-1, WORDS), IDS[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()


if __name__ == "__main__":
    main(*sys.argv[1:])
