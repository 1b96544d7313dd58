"""The planted faults asked of other tools: how an answer is scored, and one real tool asked (CP-18)."""

import sys
from pathlib import Path

import pytest

from benchmarks.faults.case import Answer, Control, Expected, Fault, Variant
from benchmarks.faults.judging import Sources
from benchmarks.faults.peers.answers import Named, answer_to_control, answer_to_fault
from benchmarks.faults.peers.asking import PEERS, worker
from benchmarks.faults.peers.score import EVERY, ask, renewed
from benchmarks.faults.peers.table import Asked, by_pair, read, table

SOURCES = Sources(
    baseline={"model.py": "a\nb\nc\nd\ne\nf\ng\nh = self.up(x)\n"},
    candidate={"model.py": "a\nb\nplanted  # PLANT\nd\ne\nf\ng\nh = self.up(x)\n"},
)
PLANTED = Fault(
    name="planted",
    mechanism="a line is changed",
    expected=(Expected(groups=("originates",), file="model.py", at="# PLANT"),),
    candidate=Variant(),
)
WEIGHT = Fault(
    name="weight",
    mechanism="a weight is changed",
    expected=(Expected(groups=("outside",), names=("blocks.1.mlp.up.weight",)),),
    candidate=Variant(),
)


def named(*lines: int, step: int = 0, phase: str = "forward", side: str = "candidate", error: str = "") -> Named:
    frames = tuple(("model.py", line) for line in lines)
    return Named(name="call", frames=frames, step=step, phase=phase, side=side, error=error)


@pytest.mark.parametrize(
    ("found", "answer"),
    [
        pytest.param(named(3), Answer.EXACT, id="the line"),
        pytest.param(named(8, 3), Answer.EXACT, id="called from the line"),
        pytest.param(named(5), Answer.ADJACENT, id="two lines below"),
        pytest.param(named(3, side="baseline"), Answer.ADJACENT, id="its number on the other side"),
        pytest.param(named(8), Answer.MISSED, id="another line"),
        pytest.param(named(3, step=1), Answer.MISSED, id="another step"),
        pytest.param(named(3, error="raised"), Answer.MISSED, id="an error"),
        pytest.param(named(), Answer.MISSED, id="no place"),
        pytest.param(Named(), Answer.MISSED, id="no difference"),
    ],
)
def test_a_line_is_held_against_the_planted_one(found: Named, answer: Answer) -> None:
    assert answer_to_fault(PLANTED, found, SOURCES) is answer


def test_a_changed_weight_is_named_by_the_call_that_reads_it_first() -> None:
    assert answer_to_fault(WEIGHT, named(8), SOURCES) is Answer.EXACT
    assert answer_to_fault(WEIGHT, named(1), SOURCES) is Answer.MISSED
    loading = Sources(baseline={}, candidate={"model.py": "weights = torch.load(path)\n"})
    assert answer_to_fault(WEIGHT, named(1), loading) is Answer.EXACT


@pytest.mark.parametrize("strict", [True, False])
def test_a_difference_in_a_control_is_a_false_claim_where_bits_agree(strict: bool) -> None:
    control = Control(name="control", mechanism="nothing", strict=strict)
    later = Answer.FALSE_CLAIM if strict else Answer.SILENT
    assert answer_to_control(control, named(1)) is Answer.FALSE_CLAIM
    assert answer_to_control(control, named(1, phase="backward")) is later
    assert answer_to_control(control, named(1, error="raised")) is Answer.SILENT
    assert answer_to_control(control, Named()) is Answer.SILENT


def test_answers_are_renewed_by_tool_and_pair(tmp_path: Path) -> None:
    kept = tmp_path / "answers.json"
    first = Asked("a", "1", "pair", is_control=False, answer="missed", said="", seconds=2.0)
    other = Asked("b", "1", "pair", is_control=False, answer="exact", said="", seconds=1.0)
    better = Asked("a", "2", "pair", is_control=False, answer="exact", said="", seconds=4.0)
    renewed(kept, [first, other])
    assert renewed(kept, [better]) == [better, other] == read(kept)
    assert "| a 2 | 1 | 1 of 1 | 0 | 0 of 0 | 0 |" in table(read(kept))
    assert "| pair | fault | exact | exact |" in by_pair(read(kept))


@pytest.mark.slow
def test_debug_mode_is_asked_in_its_own_process(tmp_path: Path) -> None:
    """It finds a changed weight, and gives up on an inserted operator: with equal bits as with unequal ones."""
    peer = next(peer for peer in PEERS if peer.name == "DebugMode")
    cases = {case.name: case for case in EVERY}
    with worker(peer, python=sys.executable) as running:
        wanted = ("weight-noise", "no-op", "identical")
        answers = {name: ask(peer, "", cases[name], running, root=tmp_path) for name in wanted}
    assert {name: found.answer for name, found in answers.items()} == {
        "weight-noise": "exact",
        "no-op": "no answer",
        "identical": "silent",
    }
    assert "Log lengths don't match" in answers["no-op"].said
