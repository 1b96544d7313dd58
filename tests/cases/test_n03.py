"""N-03: reading a live tensor must not make its storage non-resizable (CA-33)."""

from pathlib import Path

import pytest

from tests.cases.captures import run_bare, run_captured, write_script

SCRIPT = """
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.Linear(8, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
shard = torch.empty(64)
for step in range(3):
    x = torch.randn(4, 8)
    # What FSDP2 does: the storage of a buffer is freed and allocated again around its use.
    shard.untyped_storage().resize_(64 * 4)
    shard.copy_(torch.arange(64.0))
    hidden = model[0](x) + shard.view(8, 8).sum()
    loss = model[2](model[1](hidden)).square().mean()
    loss.backward()
    gradients = [p.grad for p in model.parameters()]
    optimizer.step()
    states = [value for state in optimizer.state.values() for value in state.values()]
    tensors = [x, shard, hidden, loss, *model.parameters(), *gradients, *states]
    print(all(tensor.untyped_storage().resizable() for tensor in tensors), loss.item().hex())
    shard.untyped_storage().resize_(0)
    optimizer.zero_grad()
"""


@pytest.mark.slow
def test_storages_stay_resizable_and_training_goes_on(tmp_path: Path) -> None:
    script = write_script(tmp_path / "train.py", SCRIPT)
    bare = run_bare(script)
    captured = run_captured(script, tmp_path / "run")
    assert captured.status == 0, captured.stderr
    assert bare.stdout.count("True") == 3
    assert captured.stdout == bare.stdout
