"""A forward that ends by an exception leaves the stack of modules: checkpointing stops its recomputation so (CA-10)."""

from pathlib import Path

import pytest

from paritrace.evidence.calls import Flag, Phase, State
from paritrace.runs.reading import open_run
from tests.cases.captures import recorded, run_bare, run_captured, write_script

SCRIPT = """
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 8))

    def forward(self, x):
        return checkpoint(self.block, x, use_reentrant=False)


torch.manual_seed(0)
model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    model(torch.randn(4, 8)).square().mean().backward()
    optimizer.step()
print([parameter.sum().item() for parameter in model.parameters()])
"""


@pytest.mark.slow
def test_recomputation_that_is_stopped_early_leaves_no_module_behind(tmp_path: Path) -> None:
    script = write_script(tmp_path / "train.py", SCRIPT)
    bare = run_bare(script)
    captured = run_captured(script, tmp_path / "run")
    assert (captured.status, captured.stdout) == (0, bare.stdout)
    assert "Warning" not in captured.stderr
    found = recorded(tmp_path / "run")
    assert {found.contexts[call.context].step for call in found.calls} == {0, 1, 2}
    forward = [call for call in found.calls if found.phase(call) is Phase.FORWARD]
    roots = [call for call in forward if found.function(call).endswith(".Model")]
    assert len(roots) == 3
    assert all(call.parent == -1 for call in roots)
    calls = found.by_id()
    again = [call for call in found.calls if call.flags & Flag.RECOMPUTE and found.function(call).startswith("aten.")]
    assert again
    assert all(found.function(calls[call.link]) == found.function(call) for call in again if call.link >= 0)
    assert len([call for call in again if call.link >= 0]) >= len(again) // 2
    with open_run(tmp_path / "run") as run:
        states = [record for record in run.records("rank-0") if isinstance(record, State)]
    assert [state.moment for state in states].count("batch") == 2 * 3, "elements and their order, three steps"
