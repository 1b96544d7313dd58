"""`paritrace check` on real trainings: each planted fault is found by its invariant, and no other one fails (CP-25)."""

from pathlib import Path

import msgspec
import pytest

from paritrace.compare.checks_result import Checked, Outcome
from tests.cases.captures import run_captured, run_python, write_script

SCRIPT = """
import sys

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

fault = sys.argv[1]
torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.wide = nn.Linear(width, 2 * width)
        self.drop = nn.Dropout(0.5)
        self.narrow = nn.Linear(2 * width, width)

    def forward(self, x):
        hidden = self.drop(torch.relu(self.wide(self.norm(x))))
        if fault == "nan":
            hidden = hidden / (hidden * 0)
        return x + self.narrow(hidden)


class Rounded(nn.Module):
    def forward(self, x):
        return x.bfloat16().float() if fault == "bfloat16" else x


class Model(nn.Module):
    def __init__(self, width=32, words=50):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(2))
        self.round = Rounded()
        self.head = nn.Linear(width, words, bias=False)
        if fault == "tied":
            self.head.weight = self.embed.weight

    def forward(self, words):
        x = self.embed(words)
        for block in self.blocks:
            if fault in ("checkpoint", "redrawn dropout"):
                x = checkpoint(block, x, use_reentrant=False, preserve_rng_state=fault == "checkpoint")
            else:
                x = block(x)
        return self.head(self.round(x))


model = Model()
if fault == "frozen":
    model.blocks[0].wide.weight.requires_grad_(False)
held = [parameter for name, parameter in model.named_parameters() if fault != "forgotten" or "blocks.1" not in name]
optimizer = torch.optim.AdamW(held, lr=0.0 if fault == "rate" else 1e-3, weight_decay=0.0)
generator = torch.Generator().manual_seed(1)
words = None
for step in range(3):
    if words is None or fault != "batch":
        words = torch.randint(0, 50, (4, 9), generator=generator)
    loss = nn.functional.cross_entropy(model(words[:, :-1]).flatten(0, 1), words[:, 1:].flatten())
    optimizer.zero_grad()
    (loss * 0 if fault == "zero" else loss).backward()
    optimizer.step()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "failing"),
    [
        ("none", set()),
        ("frozen", set()),
        ("tied", set()),
        ("checkpoint", set()),
        ("redrawn dropout", {"recomputation.equals_original"}),
        ("forgotten", {"parameters.in_optimizer"}),
        ("rate", {"optimizer.learning_rate", "parameters.change"}),
        ("zero", {"gradients.not_zero", "parameters.change"}),
        ("batch", {"batches.not_repeated"}),
        ("nan", {"values.finite", "loss.finite", "gradients.norm_finite"}),
        ("bfloat16", {"dtypes.no_hidden_narrowing"}),
    ],
)
def test_cp25_a_fault_fails_its_invariant_and_no_other(tmp_path: Path, fault: str, failing: set[str]) -> None:
    levels = ("module", "op") if fault in ("checkpoint", "redrawn dropout") else ("module",)
    script = write_script(tmp_path / "train.py", SCRIPT)
    done = run_captured(script, tmp_path / "run", fault, levels=levels)
    assert done.status == 0, done.stderr
    checked = run_python("-m", "paritrace", "check", str(tmp_path / "run"), "--json", directory=tmp_path)
    assert checked.status == 0, checked.stderr
    found = msgspec.json.decode(checked.stdout, type=Checked)
    assert {one.id for one in found.invariants if one.status is Outcome.FAIL} == failing
    if fault == "redrawn dropout":
        (one,) = [one for one in found.invariants if one.id == "recomputation.equals_original"]
        assert one.evidence.module.endswith(".drop")
    if fault == "bfloat16":
        (one,) = [one for one in found.invariants if one.id == "dtypes.no_hidden_narrowing"]
        assert one.evidence.module == "round"
