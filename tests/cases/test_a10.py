"""A-10: a near tie tips over under another batch; what follows has other inputs and is no finding of its own."""

from pathlib import Path

import pytest
import torch

import paritrace
from paritrace.compare.engine import compare
from paritrace.compare.result import Comparison
from paritrace.reports.first_screen import first_screen
from paritrace.runs.reading import open_run

PREFIX = [7, 3, 9]
NEAR_TIES = ([10.0, 9.9999], [9.9999, 10.0])


def capture(run: Path, tie: list[float], tail: list[int]) -> Path:
    """A greedy decoder's last choice of the shared prefix, and the tokens it went on with."""
    tokens = torch.tensor([PREFIX + tail])
    logits = torch.zeros(1, len(tokens[0]), 12)
    for place, following in enumerate(tokens[0, 1:].tolist()):
        logits[0, place, following] = 5.0
    logits[0, len(PREFIX) - 1, 4], logits[0, len(PREFIX) - 1, 5] = tie
    with paritrace.trace(run):
        paritrace.rows(["prompt"], input_ids=tokens).observe("logits", logits)
    return run


@pytest.fixture
def found(tmp_path: Path) -> Comparison:
    a = capture(tmp_path / "a", NEAR_TIES[0], [4, 1, 2, 8])
    b = capture(tmp_path / "b", NEAR_TIES[1], [5, 10, 11, 0])
    with open_run(a) as ours, open_run(b) as theirs:
        return compare(ours, theirs).result


def test_the_prefix_the_gap_and_nothing_behind_it(found: Comparison) -> None:
    told = found.token_rows
    assert told is not None
    (choice,) = told.choices
    assert (choice.sample, choice.position, choice.prefix, choice.whole) == ("prompt", 3, 3, True)
    assert choice.output == "logits"
    assert choice.margins == pytest.approx((1e-4, 1e-4), rel=0.01)
    outputs = {output.output: output for output in told.outputs}
    assert (outputs["input_ids"].agree, outputs["input_ids"].differ, outputs["input_ids"].after_choice) == (3, 1, 3)
    assert outputs["logits"].differ == 1, "the row that the choice was made from"
    assert outputs["logits"].after_choice == choice.later - 3 > 0


def test_it_is_told_in_these_words(found: Comparison) -> None:
    words = " ".join(first_screen(found).split())
    assert "same prefix of 3 tokens, another token at position 3; top-2 gap of logits 1.0e-04 and 1.0e-04" in words
    assert "6 later rows follow from it" in words
    assert "%" not in words, "no share of wrong tokens"


def test_an_output_that_did_not_make_the_choice_lends_it_no_margin(tmp_path: Path) -> None:
    """The same tokens, sampled against the logits: the largest element is not what came next."""
    a = capture(tmp_path / "a", [9.9999, 10.0], [4, 1])
    b = capture(tmp_path / "b", [10.0, 9.9999], [5, 1])
    with open_run(a) as ours, open_run(b) as theirs:
        told = compare(ours, theirs).result.token_rows
    assert told is not None
    (choice,) = told.choices
    assert (choice.output, choice.margins) == ("", None)
