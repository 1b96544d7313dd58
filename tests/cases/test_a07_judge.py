"""A-07: an ill-conditioned inverse whose candidate is nearer to float64 than the baseline: a fact, no verdict."""

from pathlib import Path

import torch
from msgspec.structs import replace

from paritrace.capture.pytorch.replay_answer import answer
from paritrace.compare.judged_result import Functions, Judged, JudgedCall, Nearer
from paritrace.compare.judging import judged_call
from paritrace.compare.result import RunRef
from paritrace.reports.judge_screen import judge_screen
from tests.capture.golden_calls import answered, golden_of, request_of, task_of

HILBERT = torch.tensor([[1.0 / (row + column + 1) for column in range(4)] for row in range(4)])


class Direct(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inverse: torch.Tensor = torch.linalg.inv(x)
        return inverse


class BySquares(torch.nn.Module):
    """The same inverse through the normal equations, which square its condition."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inverse: torch.Tensor = torch.linalg.inv(x.T @ x) @ x.T
        return inverse


def judged(base: torch.nn.Module, candidate: torch.nn.Module, folder: Path) -> JudgedCall:
    task = task_of(golden_of(base, folder, HILBERT), folder)
    request = request_of(task, output=folder)
    replays = [answer(module, task, request, args=(), kwargs={}) for module in (base, candidate)]
    ours, theirs = (answered(*found, folder / f"{place}") for place, found in enumerate(replays))
    return judged_call(ours, theirs, rank=0, step=0, number=0)


def test_a07_the_candidate_is_nearer_to_the_reference_and_no_side_is_called_right(tmp_path: Path) -> None:
    call = judged(BySquares(), Direct(), tmp_path)
    assert call.functions is Functions.SAME
    assert call.nearer is Nearer.CANDIDATE
    reference = RunRef("r", "0" * 64, "R")
    told = judge_screen(Judged("paritrace-judged", "1.0", reference, reference, "F1", "the call", call))
    assert "The candidate is nearer to the float64 reference." in told
    assert not [word for word in ("regress", "wrong", "worse", "better", "incorrect") if word in told.lower()]


def test_a07_exchanged_it_is_the_baseline_and_without_a_reference_no_direction_is_claimed(tmp_path: Path) -> None:
    call = judged(Direct(), BySquares(), tmp_path)
    assert call.nearer is Nearer.BASELINE
    (out,) = call.tensors
    unknown = replace(call, functions=Functions.UNDETERMINED, nearer=Nearer.NO_REFERENCE)
    unknown = replace(unknown, tensors=(replace(out, functions=Functions.UNDETERMINED, why="no kernel"),))
    reference = RunRef("r", "0" * 64, "R")
    told = judge_screen(Judged("paritrace-judged", "1.0", reference, reference, "F1", "the call", unknown))
    assert "no direction of error is claimed" in told
