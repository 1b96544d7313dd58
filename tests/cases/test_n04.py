"""N-04: no strong reference to a workload tensor outlives the hook, so no call is added (CA-34)."""

from pathlib import Path

import pytest

from tests.cases.captures import run_bare, run_captured, write_script

# The workload counts its own calls: held gradients would show as additional copies inside AccumulateGrad.
SCRIPT = """
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode


class Count(TorchDispatchMode):
    names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        Count.names.append(str(func))
        return func(*args, **(kwargs or {}))


torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for step in range(3):
    with Count():
        loss = model(torch.randn(2, 5, 16)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print(step, len(Count.names), loss.item().hex())
print("\\n".join(Count.names))
"""


@pytest.mark.slow
@pytest.mark.parametrize("levels", [("digest",), ("module",), ("op",), ("module", "op")], ids="+".join)
def test_the_same_calls_in_the_same_order(tmp_path: Path, levels: tuple[str, ...]) -> None:
    script = write_script(tmp_path / "train.py", SCRIPT)
    bare = run_bare(script)
    assert bare.status == 0, bare.stderr
    assert len(bare.stdout.splitlines()) > 500
    captured = run_captured(script, tmp_path / "run", levels=levels)
    assert captured.status == 0, captured.stderr
    assert captured.stdout == bare.stdout
