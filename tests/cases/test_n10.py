"""N-10: data loader workers live through a capture, are not captured, and the run says so (CA-10)."""

from pathlib import Path

import pytest

from paritrace.evidence.gaps import CountedGap
from tests.cases.captures import recorded, run_bare, run_captured, write_script

SCRIPT = """
import torch
from torch.utils.data import DataLoader, Dataset


class Data(Dataset):
    def __len__(self):
        return 24

    def __getitem__(self, index):
        return torch.full((4,), float(index)).cumsum(0).tanh()  # operators inside the worker


if __name__ == "__main__":
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in DataLoader(Data(), batch_size=8, num_workers=2):
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(loss.item().hex())
"""


@pytest.mark.slow
def test_workers_live_and_are_said_to_be_not_captured(tmp_path: Path) -> None:
    script = write_script(tmp_path / "train.py", SCRIPT)
    bare = run_bare(script)
    captured = run_captured(script, tmp_path / "run")
    assert captured.status == 0, captured.stderr
    assert captured.stdout == bare.stdout
    assert len(bare.stdout.splitlines()) == 3
    journal = recorded(tmp_path / "run")
    functions = {journal.function(call) for call in journal.calls}
    assert not any("cumsum" in name for name in functions), "a worker's operator was recorded as the trainer's"
    assert sum(gap.count for gap in journal.gaps if gap.reason is CountedGap.FORKED_CHILD_NOT_COVERED) == 2
