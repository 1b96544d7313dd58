"""What narrow does next, for every kind of evidence (CP-15, P2)."""

import pytest
from msgspec.structs import replace

from paritrace.automation.narrow_captures import options_for
from paritrace.automation.narrow_records import Ended, Finer, Plan, Question
from paritrace.automation.narrow_rules import by_size, covers, next_plan
from paritrace.automation.narrow_words import answer_of, place_in_words, question_of
from paritrace.compare.repeats import repeats_of
from paritrace.compare.result import Difference, EnvelopeUsed, Group, Outside
from tests.automation.narrowings import ASKED, MODULE, parted, place, seen
from tests.reports.comparisons import agreeing

REPEATS = seen(Question.REPEAT, agreeing())
BY_MODULE = place(level="module", function="Attention")
LOSS = place(level="digest", function="loss", slot="loss", module="", group=Group.UNDETERMINED)


def test_the_baseline_is_repeated_before_anything_is_claimed() -> None:
    assert next_plan(ASKED, []) == Plan(Question.REPEAT)
    assert next_plan(ASKED, [REPEATS]) == Plan(Question.STEP)


def test_requests_without_runs_are_recorded_first_and_need_no_other_look_at_the_steps() -> None:
    asked = replace(ASKED, recorded=False)
    recorded = seen(Question.RECORD, parted(LOSS))
    assert next_plan(asked, []) == Plan(Question.RECORD)
    assert next_plan(asked, [recorded]) == Plan(Question.REPEAT)
    assert next_plan(asked, [recorded, REPEATS]) == Plan(Question.MODULES, 1)


def test_a_figure_of_a_step_leads_to_its_modules_then_to_operators_of_one() -> None:
    steps = [REPEATS, seen(Question.STEP, parted(LOSS))]
    assert next_plan(ASKED, steps) == Plan(Question.MODULES, 1)
    modules = [*steps, seen(Question.MODULES, parted(BY_MODULE))]
    assert next_plan(ASKED, modules) == Plan(Question.OPERATORS, 1, module=MODULE)
    assert next_plan(ASKED, [*modules, seen(Question.OPERATORS, parted(place()))]) is Ended.FOUND


def test_a_recorded_module_needs_no_round_by_modules() -> None:
    steps = [REPEATS, seen(Question.STEP, parted(BY_MODULE))]
    assert next_plan(ASKED, steps) == Plan(Question.OPERATORS, 1, module=MODULE)
    assert next_plan(ASKED, [REPEATS, seen(Question.STEP, parted(place()))]) is Ended.FOUND


def test_draws_are_made_where_bits_do_not_decide() -> None:
    asked = replace(ASKED, draws=8)
    steps = [REPEATS, seen(Question.STEP, parted(BY_MODULE))]
    assert next_plan(asked, steps) == Plan(Question.MODULES, 1, draws=8)
    exits = replace(BY_MODULE, group=Group.EXCEEDS)
    judged = parted(exits, place(level="module", module="other"))
    assert next_plan(asked, [*steps, seen(Question.MODULES, judged)]) == Plan(
        Question.OPERATORS, 1, module=MODULE, draws=8
    )
    same_inputs = parted(exits, BY_MODULE)
    assert next_plan(asked, [*steps, seen(Question.MODULES, same_inputs)]) == Plan(
        Question.OPERATORS, 1, module=MODULE, draws=0
    )


@pytest.mark.parametrize(("own_step", "expected"), [(0, Ended.NOT_REPEATABLE), (1, Ended.NOT_REPEATABLE), (2, None)])
def test_a_baseline_that_differs_from_itself_stops_it_unless_the_runs_part_before(
    own_step: int, expected: Ended | None
) -> None:
    repeat = seen(Question.REPEAT, replace(parted(LOSS), ladder_step=own_step))
    steps = [repeat, seen(Question.STEP, parted(LOSS))]
    planned = next_plan(ASKED, steps)
    assert planned == (Plan(Question.REPEAT_CALL, own_step) if expected else Plan(Question.MODULES, 1))
    if expected:
        by_call = seen(Question.REPEAT_CALL, parted(place()), plan=Plan(Question.REPEAT_CALL, own_step))
        assert next_plan(ASKED, [*steps, by_call]) is expected


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        (place(), Ended.NOT_REPEATABLE),
        (place(baseline_record_id=100, function="aten.mul.Tensor"), Ended.NOT_REPEATABLE),
        (place(baseline_record_id=300, function="aten.mul.Tensor"), Ended.FOUND),
        (place(step=2), Ended.NOT_REPEATABLE),
        (place(step=2, function="aten.mul.Tensor"), Ended.FOUND),
    ],
)
def test_a08_a_call_at_or_behind_one_that_differs_by_itself_does_not_stand(own: Difference, expected: Ended) -> None:
    steps = [REPEATS, seen(Question.STEP, parted(LOSS)), seen(Question.MODULES, parted(BY_MODULE))]
    found = replace(parted(place()), repeats=repeats_of([parted(own)]))
    assert next_plan(ASKED, [*steps, seen(Question.OPERATORS, found)]) is expected


def test_a08_what_draws_judge_beyond_stands_wherever_the_baseline_differs_from_itself() -> None:
    steps = [REPEATS, seen(Question.STEP, parted(LOSS)), seen(Question.MODULES, parted(BY_MODULE))]
    found = replace(parted(place()), repeats=repeats_of([parted(place())]))
    judged = replace(found, findings=(replace(found.findings[0], ratio=40.0, reached=3.0),))
    assert next_plan(ASKED, [*steps, seen(Question.OPERATORS, judged)]) is Ended.FOUND


def test_nothing_to_follow() -> None:
    assert next_plan(ASKED, [REPEATS, seen(Question.STEP, agreeing())]) is Ended.NO_DIFFERENCE
    nothing = replace(agreeing(), steps_compared=())  # one was killed before it had written a step
    assert next_plan(ASKED, [REPEATS, seen(Question.STEP, nothing)]) is Ended.NOT_COMPARED
    steps = [REPEATS, seen(Question.STEP, parted(LOSS))]
    assert next_plan(ASKED, [*steps, seen(Question.MODULES, agreeing())]) is Ended.NOT_SEEN_AGAIN


def test_what_differed_before_any_call_is_not_looked_for_among_calls() -> None:
    state = Outside(0, 0, "begin", "parameter", "fc.weight", "a", "b")
    alone = replace(agreeing(), outside=(state,))
    assert next_plan(ASKED, [REPEATS, seen(Question.STEP, alone)]) is Ended.OUTSIDE
    blamed = parted(place(group=Group.OUTSIDE, file="", cause="parameter fc.weight", level="digest"))
    assert next_plan(ASKED, [REPEATS, seen(Question.STEP, blamed)]) is Ended.OUTSIDE


def test_where_no_module_was_called_the_whole_step_is_looked_at_by_operators() -> None:
    steps = [REPEATS, seen(Question.STEP, parted(LOSS))]
    nothing = replace(agreeing(), counts=replace(agreeing().counts, paired=0))
    assert next_plan(ASKED, [*steps, seen(Question.MODULES, nothing)]) == Plan(Question.EVERYTHING, 1)


@pytest.mark.parametrize("found", [LOSS, place(level="module", module=""), place(level="module", region=True)])
def test_what_names_no_module_is_looked_for_in_the_whole_step(found: Difference) -> None:
    steps = [REPEATS, seen(Question.STEP, parted(LOSS)), seen(Question.MODULES, parted(found))]
    assert next_plan(ASKED, steps) == Plan(Question.EVERYTHING, 1)


def test_a_module_that_shows_nothing_is_followed_by_the_whole_step_and_then_the_evidence_ends() -> None:
    steps = [REPEATS, seen(Question.STEP, parted(LOSS)), seen(Question.MODULES, parted(BY_MODULE))]
    for shown in (agreeing(), parted(BY_MODULE)):
        operators = [*steps, seen(Question.OPERATORS, shown)]
        assert next_plan(ASKED, operators) == Plan(Question.EVERYTHING, 1)
        assert next_plan(ASKED, [*operators, seen(Question.EVERYTHING, parted(BY_MODULE))]) is Ended.EVIDENCE_ENDS
        assert next_plan(ASKED, [*operators, seen(Question.EVERYTHING, agreeing())]) is Ended.NOT_SEEN_AGAIN


def test_a_collective_stands_once_it_was_seen_call_by_call() -> None:
    counted = place(level="digest", collective="all_reduce: 3 against 2", module="")
    recorded = replace(counted, level="module")
    steps = [REPEATS, seen(Question.STEP, parted(counted))]
    assert next_plan(ASKED, steps) == Plan(Question.MODULES, 1)
    assert next_plan(ASKED, [*steps, seen(Question.MODULES, parted(recorded))]) is Ended.FOUND


def test_each_round_captures_only_what_it_asks_for() -> None:
    assert options_for(Plan(Question.REPEAT)).arguments == ("--level=digest",)
    assert options_for(Plan(Question.STEP)).arguments == ()
    assert options_for(Plan(Question.MODULES, 7), upcast="float64").arguments == (
        "--level=module",
        "--steps=7:8",
        "--upcast=float64",
    )
    fine = options_for(Plan(Question.OPERATORS, 7, module="a.b")).arguments
    assert fine[-2:] == ("--select=a.b", "--select=a.b.*")
    assert set(options_for(Plan(Question.EVERYTHING, 7)).arguments) == set(fine[:-2])
    assert Finer(draws=8).arguments == ("--perturb=8",)


def test_questions_and_answers_are_one_line() -> None:
    assert question_of(Plan(Question.OPERATORS, 3, module="")) == "which operator of the root module at step 3?"
    asked = [question_of(Plan(question)) for question in Question]
    assert len(set(asked)) == len(asked)
    assert all(text.endswith("?") and "\n" not in text for text in asked)
    assert answer_of(Plan(Question.REPEAT), agreeing()) == "yes, bit for bit (steps 0-2)"
    assert answer_of(Plan(Question.REPEAT), parted(LOSS)) == "no: from step 1 on it differs from itself (loss)"
    assert answer_of(Plan(Question.REPEAT), replace(agreeing(), ranks_compared=())).startswith("not known")
    again = replace(parted(place()), repeats=repeats_of([parted(place()), agreeing()]))
    told = "aten._softmax.default (attention.py:41, forward), 1 of 2 repeats"
    assert answer_of(Plan(Question.REPEAT_CALL), again) == told
    alike = replace(agreeing(), repeats=repeats_of([agreeing()]))
    assert answer_of(Plan(Question.REPEAT_CALL), alike) == "none of 1 repeat differs this time"
    assert answer_of(Plan(Question.STEP), agreeing()) == "no difference (steps 0-2)"
    windowed = replace(parted(LOSS), steps_compared=(4, 5))
    assert covers(windowed) == "steps 4 to 5 were recorded on both sides, not those before"
    assert answer_of(Plan(Question.STEP), windowed) == f"step 1: loss; {covers(windowed)}"


def test_a_place_in_words() -> None:
    assert place_in_words(place()) == "aten._softmax.default (attention.py:41, forward)"
    assert place_in_words(replace(BY_MODULE, group=Group.EXCEEDS)).endswith("forward), beyond round-off")
    gradient = place(level="digest", function="gradient", slot="fc.weight")
    assert place_in_words(gradient) == "gradient fc.weight"
    region = place(region=True, region_calls=(28, 4))
    assert place_in_words(region) == f"{MODULE}: 28 calls against 4 (attention.py:41)"


def test_a_place_that_is_fed_a_difference_is_looked_for_in_the_module_around_it() -> None:
    steps = [REPEATS, seen(Question.STEP, parted(LOSS))]
    fed = place(level="module", module=f"{MODULE}.out_proj", group=Group.UNDETERMINED)
    assert next_plan(ASKED, [*steps, seen(Question.MODULES, parted(fed))]) == Plan(Question.OPERATORS, 1, module=MODULE)
    outermost = replace(fed, module="head")
    assert next_plan(ASKED, [*steps, seen(Question.MODULES, parted(outermost))]) == Plan(Question.EVERYTHING, 1)


def test_in_a_wider_precision_the_first_error_above_round_off_is_followed() -> None:
    benign, bug = place(level="module", module="a"), place(level="module", module="b")
    found = parted(benign, bug)
    sized = tuple(replace(one, measured=size) for one, size in zip(found.findings, (2e-16, 1e-2), strict=True))
    judged = by_size(replace(found, findings=sized), "float64")
    assert [one.place.module for one in judged.findings] == ["b", "a"]
    assert judged.findings[0].strength.startswith("an error of 1.0e-02 in float64 is no round-off")
    small = by_size(replace(found, findings=sized[:1]), "float64")
    assert "2.0e-16 in float64 is round-off" in small.findings[0].strength
    assert "no size" in by_size(found, "float32").findings[0].strength
    assert by_size(found, "") is found
    assert by_size(agreeing(), "float64").findings == ()


def test_draws_judge_by_themselves_in_a_wider_precision_too() -> None:
    used = EnvelopeUsed(kind="perturbed baselines", num_draws=8, judged=10)
    found = replace(parted(place(level="module")), envelope=used)
    assert by_size(found, "float64") is found
