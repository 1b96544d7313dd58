"""The backward pass inside a reentrant checkpoint is backward, not recompute, and links to the recomputation."""

from pathlib import Path

import pytest

from paritrace.evidence.calls import Flag
from tests.cases.captures import recorded, run_captured, write_script

SCRIPT = """
import torch
from torch.utils.checkpoint import checkpoint

model = torch.nn.Linear(3, 3)
out = checkpoint(model, torch.ones(2, 3, requires_grad=True), use_reentrant=True)
out.sum().backward()
"""


@pytest.mark.slow
def test_the_inner_backward_is_backward(tmp_path: Path) -> None:
    done = run_captured(write_script(tmp_path / "train.py", SCRIPT), tmp_path / "run", levels=("op",))
    assert done.status == 0, done.stderr
    journal = recorded(tmp_path / "run")
    by_id = journal.by_id()
    repeated = [call for call in journal.calls if call.flags & Flag.RECOMPUTE]
    assert "aten.addmm.default" in {journal.function(call) for call in repeated}
    assert "aten.mm.default" not in {journal.function(call) for call in repeated}
    inner = [call for call in journal.calls if journal.node(call) == "AddmmBackward0"]
    assert "aten.mm.default" in {journal.function(call) for call in inner}
    for call in inner:
        forward = by_id[call.link]
        assert journal.function(forward) == "aten.addmm.default"
        assert forward.flags & Flag.RECOMPUTE, "the graph that is run is the recomputed one"
