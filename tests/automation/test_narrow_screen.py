"""The screen of narrow: one result, its rounds with their cost, never more than 34 lines (CP-15, SU-7)."""

import pytest
from msgspec.structs import replace

from paritrace.automation.narrow_records import Ended, Plan, Question, Seen
from paritrace.automation.narrow_result import last_compared, narrowed
from paritrace.automation.narrow_screen import narrow_screen
from paritrace.compare.repeats import repeats_of
from paritrace.compare.result import Group
from tests.automation.narrowings import MODULE, parted, place, seen
from tests.reports.comparisons import agreeing

LOSS = place(level="digest", function="loss", slot="loss", module="", group=Group.UNDETERMINED)
BY_MODULE = place(level="module", function="Attention")
BENIGN = place(level="module", function="Kernel", module="encoder.layers.0.other")


def rounds(*more: Seen) -> list[Seen]:
    first = [seen(Question.REPEAT, agreeing()), seen(Question.STEP, parted(LOSS), number=2)]
    return [*first, *more]


def screen(found: list[Seen], ended: Ended) -> str:
    result = narrowed(found, ended, sides=("A", "B"), directory="B.narrow", cut_off=("round-3",))
    return narrow_screen(result, found[-1].comparison)


def test_the_call_its_lines_and_the_cost_of_each_round_are_shown() -> None:
    modules = seen(Question.MODULES, parted(BY_MODULE, BENIGN), number=3)
    operators = seen(Question.OPERATORS, parted(place()), number=4, plan=Plan(Question.OPERATORS, 1, module=MODULE))
    found = rounds(modules, operators)
    text = screen(found, Ended.FOUND)
    assert "[operator]  aten._softmax.default (attention.py:41, forward), step 1, rank 0" in text
    assert "weights = scores.softmax(dim=-1)" in text
    assert "weights = scores.to(torch.bfloat16)" in text
    assert "6 s, 4.0 MB in all" in text
    assert "not finished, and kept: round-3" in text
    result = narrowed(found, Ended.FOUND, sides=("A", "B"), directory="d")
    assert [one.place.module for one in result.others] == [BENIGN.module]  # the benign change stands second
    assert result.place == operators.comparison.findings[0].place


@pytest.mark.parametrize("ended", [ended for ended in Ended if ended not in (Ended.FOUND, Ended.OUTSIDE)])
def test_why_it_stopped_is_said(ended: Ended) -> None:
    result = narrowed(rounds(), ended, sides=("A", "B"), directory="d")
    assert result.place is None
    assert "[stopped]" in screen(rounds(), ended)


def test_a08_the_call_at_which_the_baseline_differs_from_itself_is_named() -> None:
    own = replace(parted(place()), repeats=repeats_of([parted(place()), parted(place()), agreeing()]))
    found = [
        seen(Question.REPEAT, replace(parted(LOSS), repeats=repeats_of([parted(LOSS)]))),
        seen(Question.STEP, parted(LOSS), number=2),
        seen(Question.REPEAT_CALL, own, number=3),
    ]
    result = narrowed(found, Ended.NOT_REPEATABLE, sides=("A", "B"), directory="d")
    assert result.repeats == own.repeats
    words = " ".join(narrow_screen(result, last_compared(found, result.ended)).split())
    told = f"the baseline does not repeat itself: first at {MODULE} aten._softmax.default model/attention.py:41"
    assert f"[repeats] {told} (step 1, rank 0, forward), 2 of 3 repeats" in words


def test_a_place_that_bits_decide_has_the_strength_of_the_round_that_draws_judged() -> None:
    judged = parted(replace(BY_MODULE, group=Group.EXCEEDS))
    told = replace(judged.findings[0], ratio=900.0, reached=3.0, strength="beyond round-off: ratio 900")
    modules = seen(Question.MODULES, replace(judged, findings=(told,)), number=3)
    inside, elsewhere = place(), place(module="decoder")
    for at, strength in ((inside, f"by round 3, of {MODULE}: beyond round-off: ratio 900"), (elsewhere, "bits only")):
        found = rounds(modules, seen(Question.OPERATORS, parted(at), number=4))
        assert narrowed(found, Ended.FOUND, sides=("A", "B"), directory="d").strength.startswith(strength)


def test_however_much_there_is_to_say_it_stays_a_screen() -> None:
    crowd = [place(level="op", module=f"m.{number}." + "deep." * 40) for number in range(10)]
    many = [seen(Question.MODULES, parted(*crowd), number=number) for number in range(3, 9)]
    told = [replace(one, round=replace(one.round, remarks=(f"{one.round.number} " + "x" * 500,))) for one in many]
    lines = screen(rounds(*told), Ended.FOUND).splitlines()
    assert len(lines) <= 34
    assert max(map(len, lines)) <= 100
