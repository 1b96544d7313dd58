"""The gradient norm of a step: of all gradients, or a gap (CA-2, CA-29)."""

from pathlib import Path

import torch

import paritrace
from paritrace.evidence.calls import StepMark
from paritrace.evidence.gaps import CaptureGap, Gap
from paritrace.runs.reading import open_run


def norm(run: Path, *, sparse: bool) -> tuple[str | Gap[CaptureGap], float]:
    """The recorded norm of one step, and torch's own over the gradients that are dense."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Embedding(8, 4, sparse=sparse), torch.nn.Linear(4, 1))
    with paritrace.trace(run, level="digest", diff=False):
        torch.autograd.backward(model(torch.tensor([1, 2, 2])).sum())
        torch.optim.SGD(model.parameters(), lr=0.1).step()
        dense = [parameter.grad for parameter in model.parameters() if not parameter.grad.is_sparse]  # type: ignore[union-attr]
    with open_run(run) as opened:
        (mark,) = [record for record in opened.records("rank-0") if isinstance(record, StepMark)]
    return mark.grad_norm, float(
        torch.nn.utils.get_total_norm([gradient for gradient in dense if gradient is not None])
    )


def test_the_norm_is_over_all_gradients(tmp_path: Path) -> None:
    recorded, expected = norm(tmp_path / "run", sparse=False)
    assert isinstance(recorded, str)
    assert abs(float.fromhex(recorded) - expected) < 1e-6 * expected


def test_a_norm_that_lacks_gradients_is_a_gap_and_says_what_it_has(tmp_path: Path) -> None:
    """P1: a part of a sum is never the sum."""
    recorded, expected = norm(tmp_path / "run", sparse=True)
    assert isinstance(recorded, Gap)
    value, _, rest = str(recorded.detail).partition(" of what was read here, ")
    assert rest == "without gradients that were not read"
    assert abs(float.fromhex(value) - expected) < 1e-6 * expected
