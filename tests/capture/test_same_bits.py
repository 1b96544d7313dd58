"""Losses, gradients, weights and generators have the same bits with and without capture, at each level (CA-14, P6)."""

import threading
from pathlib import Path

import pytest
import torch

from benchmarks.same_bits.table import LEVELS, REWRITTEN, row
from benchmarks.same_bits.workloads import WORKLOADS


@pytest.fixture
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("name", WORKLOADS)
def test_every_cell_is_equal(name: str, tmp_path: Path) -> None:
    agree = row(name, tmp_path)
    assert set(agree) == {"bare again", *LEVELS, REWRITTEN}
    assert agree["bare again"], "a training that differs from itself proves nothing"
    assert [column for column, same in agree.items() if not same] == []
    ours = [thread.name for thread in threading.enumerate() if thread.name.startswith("paritrace")]
    assert ours == [], "no thread of ours is left; torch's compiler keeps some of its own"
