"""A tensor whose storage holds no bytes is a gap, never a read (CA-5, P6): found with `torch.func.hessian`."""

from pathlib import Path

import pytest

from paritrace.evidence.gaps import CaptureGap, Gap
from tests.cases.captures import recorded, run_bare, run_captured, write_script

SCRIPT = """
import torch
from torch import nn


class Shards(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("whole", torch.ones(8))
        self.register_buffer("part", self.whole[4:])
        self.layer = nn.Linear(2, 2)

    def forward(self, x):
        return self.layer(x)


model = Shards()
model.whole.untyped_storage().resize_(0)  # as FSDP2 frees what it has gathered
loss = model(torch.ones(1, 2)).sum()
loss.backward()
zero = torch._efficientzerotensor(3)
print((zero + torch.ones(3)).tolist(), model.whole.shape, model.part.view(2, 2).shape)
print(torch.func.hessian(lambda v: (v**3).sum())(torch.ones(2)).tolist())
"""


@pytest.mark.slow
def test_storages_without_bytes_are_gaps(tmp_path: Path) -> None:
    script = write_script(tmp_path / "train.py", SCRIPT)
    bare = run_bare(script)
    captured = run_captured(script, tmp_path / "run")
    assert bare.status == captured.status == 0, captured.stderr
    assert captured.stdout == bare.stdout
    slots = [slot for call in recorded(tmp_path / "run").calls for slot in (*call.inputs, *call.outputs)]
    assert any(isinstance(slot.bits, Gap) and slot.bits.gap is CaptureGap.NO_DATA for slot in slots)
