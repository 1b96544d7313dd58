"""The training that the pairs share: a tiny Llama, or a model with routed experts, in one of several ways.

`training.py FOLDER VARIANT…` captures each variant into FOLDER/VARIANT; under torchrun all ranks into the same run.
"""

import os
import sys
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

import paritrace

VOCABULARY, LENGTH = 96, 16
RANK, WORLD = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One way to run the training. `draw`: the seed of a perturbed run, 0 for none; `first`: the step to resume at."""

    attention: str = "eager"
    eps: float = 1e-6
    dtype: torch.dtype = torch.float32
    backend: str = ""  # of torch.compile; "": not compiled
    experts: bool = False
    last_first: bool = False  # adds the parts of a sum in the other order
    layout: str = "one"  # one | accumulated | ddp | tp
    first: int = 0
    steps: int = 2
    with_optimizer: bool = True  # the resumed run loads the optimizer's state too
    level: tuple[str, ...] = ("module",)
    draw: int = 0


class Routed(nn.Module):
    """Tokens go to the better of four experts; two of them are nearly tied for the first token."""

    def __init__(self, *, last_first: bool) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, 32)
        self.mix = Mix(last_first=last_first)
        self.gate = Gate()
        self.experts = nn.ModuleList(nn.Linear(32, 32) for _ in range(4))
        self.head = nn.Linear(32, VOCABULARY)

    def forward(self, input_ids: torch.Tensor, labels: torch.Tensor) -> Any:
        hidden = self.mix(self.embed(input_ids))
        weights, chosen = self.gate(hidden)
        outputs = torch.stack([expert(hidden) for expert in self.experts], dim=-2)
        index = chosen[..., None].expand(*chosen.shape, hidden.shape[-1])
        hidden = hidden + (outputs.gather(-2, index) * weights[..., None]).sum(-2)
        return Loss(nn.functional.cross_entropy(self.head(hidden).flatten(0, 1), labels.flatten()))


@dataclass
class Loss:
    loss: torch.Tensor


class Mix(nn.Module):
    """A sum in one of two orders: the same up to round-off."""

    def __init__(self, *, last_first: bool) -> None:
        super().__init__()
        self.last_first = last_first

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = torch.split(x, 4, dim=-1)
        total = torch.zeros_like(parts[0])
        for part in reversed(parts) if self.last_first else parts:
            total = total + part
        return x + total.repeat(1, 1, 8)


class Gate(nn.Module):
    """Scores of experts: the first two are equal but for the order of a sum, so round-off decides between them."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(32, 2))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scores = x @ self.weight
        again = (x.flip(-1) @ self.weight.flip(0))[..., :1]
        found = torch.topk(torch.cat([scores, again, -scores[..., :1].abs()], dim=-1), 1)
        return found.values.sigmoid(), found.indices


def model_of(variant: Variant) -> nn.Module:
    if variant.experts:
        return Routed(last_first=variant.last_first)
    transformers: Any = import_module("transformers")
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=LENGTH,
        rms_norm_eps=variant.eps,
        attn_implementation=variant.attention,
        use_cache=False,
    )
    model: nn.Module = transformers.LlamaForCausalLM(config).to(variant.dtype).train()
    return model


def laid_out(model: nn.Module, variant: Variant) -> nn.Module:
    if variant.layout == "ddp":
        return DistributedDataParallel(model)
    if variant.layout == "tp":
        mesh = init_device_mesh("cpu", (WORLD,), mesh_dim_names=("tp",))
        columns = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "mlp.gate_proj", "mlp.up_proj")
        rows = ("self_attn.o_proj", "mlp.down_proj")
        for layer in model.get_submodule("model.layers").children():
            plan: dict[str, Any] = {name: ColwiseParallel() for name in columns}
            parallelize_module(layer, mesh, plan | {name: RowwiseParallel() for name in rows})
    return torch.compile(model, backend=variant.backend) if variant.backend else model  # type: ignore[return-value]


@dataclass
class Training:
    """The state of one training."""

    variant: Variant
    model: nn.Module = field(init=False)
    optimizer: torch.optim.Optimizer = field(init=False)
    generator: torch.Generator = field(init=False)

    def __post_init__(self) -> None:
        torch.manual_seed(0)
        self.model = laid_out(model_of(self.variant), self.variant)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.generator = torch.Generator().manual_seed(1)

    def step(self) -> None:
        tokens = torch.randint(VOCABULARY, (2, LENGTH), generator=self.generator)
        mine = {"accumulated": [tokens[:1], tokens[1:]], "ddp": [tokens[RANK : RANK + 1]]}
        batches = mine.get(self.variant.layout, [tokens])
        for batch in batches:
            loss = self.model(input_ids=batch, labels=batch).loss / len(batches)
            torch.autograd.backward(loss)
        self.optimizer.step()
        self.optimizer.zero_grad()

    def resume(self) -> None:
        """Go on from a checkpoint of another process: everything that was saved is loaded, or all but the optimizer."""
        before = Training(replace(self.variant, first=0))
        for _ in range(self.variant.first):
            before.step()
        self.model.load_state_dict(before.model.state_dict())
        if self.variant.with_optimizer:
            self.optimizer.load_state_dict(before.optimizer.state_dict())
        self.generator.set_state(before.generator.get_state())


def capture(run: Path, variant: Variant) -> Path:
    training = Training(variant)
    if variant.first:
        training.resume()
    end = variant.first + variant.steps
    with paritrace.trace(run, level=variant.level, steps=(variant.first, end), diff=False, perturb_seed=variant.draw):
        for step in range(variant.first, end):
            if variant.first:
                paritrace.step(step)
            training.step()
    return run


RANKED = {
    "one": Variant(),
    "accumulated": Variant(layout="accumulated"),
    "ddp": Variant(layout="ddp"),
    "tp": Variant(layout="tp"),
}


def main() -> None:
    torch.set_num_threads(1)
    if WORLD > 1:
        dist.init_process_group("gloo")
    for name in sys.argv[2:]:
        capture(Path(sys.argv[1]) / name, RANKED[name])
    if WORLD > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
