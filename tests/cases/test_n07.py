"""N-07: the same elements in another order is said of layouts, never of masks (CA-7, CP-7)."""

from pathlib import Path

import pytest

from paritrace.compare.result import DifferenceClass
from tests.cases.captures import compare, run_captured, write_script

SCRIPT = """
import sys

import torch
from torch import nn


class Rearrange(nn.Module):
    def forward(self, x):
        if sys.argv[1] == "a":
            return x.clone()
        match sys.argv[2]:
            case "interleaved":
                half = x.shape[-1] // 2
                return torch.stack([x[..., :half], x[..., half:]], -1).flatten(-2)
            case "rolled":
                return x.roll(1, -1)
            case "transposed":
                return x.transpose(0, 1).contiguous()


class Mask(nn.Module):
    def forward(self, x):
        mask = torch.zeros(2000)
        start = 0 if sys.argv[1] == "a" else 700
        mask[start : start + 1000] = 1
        return mask


torch.manual_seed(0)
model = Mask() if sys.argv[2] == "mask" else Rearrange()
with torch.no_grad():
    model(torch.randn(64, 64).bfloat16())
"""


def first_class(tmp_path: Path, change: str) -> DifferenceClass:
    script = write_script(tmp_path / "train.py", SCRIPT)
    for side in ("a", "b"):
        done = run_captured(script, tmp_path / side, side, change, levels=("module",))
        assert done.status == 0, done.stderr
    first = compare(tmp_path / "a", tmp_path / "b").first_difference
    assert first is not None
    return first.difference_class


@pytest.mark.slow
@pytest.mark.parametrize("change", ["interleaved", "rolled", "transposed"])
def test_another_order_of_bfloat16_elements_is_named(tmp_path: Path, change: str) -> None:
    assert first_class(tmp_path, change) is DifferenceClass.SAME_ELEMENTS_OTHER_ORDER


@pytest.mark.slow
def test_two_masks_with_equally_many_ones_are_not_called_a_layout(tmp_path: Path) -> None:
    assert first_class(tmp_path, "mask") is not DifferenceClass.SAME_ELEMENTS_OTHER_ORDER
