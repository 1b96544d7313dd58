"""N-09: a model with in-place activations runs under capture, its backward observed (CA-10)."""

from pathlib import Path

import pytest

from paritrace.evidence.calls import Phase
from tests.cases.captures import recorded, run_bare, run_captured, write_script

SCRIPT = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.act, self.second = nn.Linear(8, 8), nn.ReLU(inplace=True), nn.Linear(8, 8)

    def forward(self, x):
        y = self.second(self.act(self.first(x)))
        y += x
        return y


torch.manual_seed(0)
model = nn.Sequential(Block(), Block(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    loss = model(torch.randn(4, 8)).square().mean()
    loss.backward()
    print(loss.item().hex(), *(p.grad.sum().item().hex() for p in model.parameters()))
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.mark.slow
@pytest.mark.parametrize("levels", [("module",), ("op",), ("module", "op")], ids="+".join)
def test_an_in_place_model_runs_and_its_backward_is_seen(tmp_path: Path, levels: tuple[str, ...]) -> None:
    script = write_script(tmp_path / "train.py", SCRIPT)
    captured = run_captured(script, tmp_path / "run", levels=levels)
    assert captured.status == 0, captured.stderr
    assert captured.stdout == run_bare(script).stdout
    journal = recorded(tmp_path / "run")
    assert any(journal.phase(call) is Phase.BACKWARD for call in journal.calls)
