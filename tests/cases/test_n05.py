"""N-05: a compiled function stays compiled under capture, and is recorded as one region (CA-15)."""

from pathlib import Path

import pytest

from paritrace.evidence.calls import Flag
from tests.cases.captures import recorded, run_bare, run_captured, write_script

# The row sum of a softmax of many columns is associated in another order by the compiler than by the eager kernel.
SCRIPT = """
import sys

import torch


def f(x):
    return torch.softmax(x * 1.7, -1).cumsum(-1).sin().sum(-1) / torch.sqrt(x.square().sum(-1) + 0.1)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(300))

    def forward(self, x):
        return f(x * self.weight)


torch.manual_seed(0)
model = Model()
called = torch.compile(model) if sys.argv[1] == "compiled" else model
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(2):
    out = called(torch.randn(64, 300))
    out.sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    print(out.detach().view(torch.int32).tolist())
print(model.weight.detach().view(torch.int32).tolist())
"""


@pytest.mark.slow
def test_compiled_stays_compiled(tmp_path: Path) -> None:
    script = write_script(tmp_path / "train.py", SCRIPT)
    eager, compiled = run_bare(script, "eager"), run_bare(script, "compiled")
    assert eager.status == compiled.status == 0, compiled.stderr
    assert eager.stdout != compiled.stdout, "the case needs a function whose compiled bits differ"
    captured = run_captured(script, tmp_path / "run", "compiled")
    assert captured.status == 0, captured.stderr
    assert captured.stdout == compiled.stdout
    journal = recorded(tmp_path / "run")
    regions = [call for call in journal.calls if call.flags & Flag.COMPILED]
    assert regions, "a compiled region is recorded, never 'no calls'"
    assert all(call.inputs and call.outputs for call in regions)
    functions = {journal.function(call) for call in journal.calls}
    # cumsum is an extern kernel of the compiler and may be seen; what it fused may not.
    assert not any(name.startswith(("aten._softmax", "aten.sin.")) for name in functions), (
        "a fused operator ran eagerly"
    )


@pytest.mark.slow
def test_eager_stays_eager(tmp_path: Path) -> None:
    script = write_script(tmp_path / "train.py", SCRIPT)
    captured = run_captured(script, tmp_path / "run", "eager")
    assert captured.stdout == run_bare(script, "eager").stdout
    journal = recorded(tmp_path / "run")
    assert any("aten._softmax" in journal.function(call) for call in journal.calls)
    assert not any(call.flags & Flag.COMPILED for call in journal.calls)
