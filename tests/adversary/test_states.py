"""A state that differs when calls without a counterpart may have written it is not outside (CP-8, CP-8a, P2)."""

from pathlib import Path

from paritrace.compare.result import Comparison, Group, Mark
from tests.adversary.trainings import Recipe, training
from tests.compare.runs import compared

PLAIN = Recipe()


def result_of(place: Path, baseline: Recipe, candidate: Recipe) -> Comparison:
    return compared(place, training(baseline), training(candidate)).result


def test_an_optimizer_of_other_calls_originates_as_one_stretch(tmp_path: Path) -> None:
    result = result_of(tmp_path, PLAIN, Recipe(optimizer=(("fused_", 0.7),)))
    first = result.first_difference
    assert first is not None
    assert (first.group, first.region, first.region_calls) == (Group.ORIGINATES, True, (2, 1))
    assert (first.step, first.phase, first.line) == (0, "optimizer", 6)
    assert result.outside == ()
    assert "2 calls at" in result.findings[0].sentence
    assert result.ladder_step == 0
    assert (result.ladder["weights"], result.ladder["optimizer"]) == (Mark.AGREES, Mark.BEYOND)
    assert result.ladder["weights+1"] is Mark.BEYOND


def test_an_optimizer_of_other_calls_that_gives_the_same_originates_nothing(tmp_path: Path) -> None:
    halves = Recipe(optimizer=(("mul_", 0.5),))
    result = result_of(tmp_path, halves, Recipe(optimizer=(("fused_", 0.5),)))
    assert result.first_difference is None
    assert result.findings == ()
    assert result.ladder["weights+1"] is Mark.AGREES


def test_clipping_on_one_side_is_named_as_what_may_have_changed_the_gradients(tmp_path: Path) -> None:
    result = result_of(tmp_path, PLAIN, Recipe(clipped=0.5))
    first = result.first_difference
    assert first is not None
    assert (first.group, first.level, first.undetermined_before) == (Group.AFTER_UNALIGNED, "digest", 1)
    assert first.cause == "gradient fc.weight may have been written at <main>:5"
    assert first.cause in result.findings[0].sentence
    assert "after calls without a counterpart" in result.findings[0].sentence
    assert result.settled is not None
    assert [text.partition("why-not ")[2][:10] for text in result.settled.would_settle] == ["candidate:"]


def test_a_weight_changed_in_the_set_up_of_one_side_follows_that_call(tmp_path: Path) -> None:
    result = result_of(tmp_path, PLAIN, Recipe(warmed=1.01))
    first = result.first_difference
    assert first is not None
    assert first.group is Group.AFTER_UNALIGNED
    assert first.cause == "parameter fc.weight may have been written at <main>:2"
    assert "before any recorded call" not in result.findings[0].sentence


def test_draws_of_one_side_are_what_made_its_generator_differ(tmp_path: Path) -> None:
    result = result_of(tmp_path, Recipe(draws=1), Recipe(draws=3))
    first = result.first_difference
    assert first is not None
    assert (first.group, first.line) != (Group.OUTSIDE, 9)
    assert first.line == 8
    assert first.group is not Group.OUTSIDE
    assert result.ladder["rng"] is Mark.BEYOND


def test_the_steps_compared_do_not_depend_on_who_is_the_baseline(tmp_path: Path) -> None:
    short, long = Recipe(steps=1), Recipe(steps=3)
    forth = result_of(tmp_path / "forth", long, short)
    back = result_of(tmp_path / "back", short, long)
    assert forth.steps_compared == back.steps_compared == (0,)


def test_a_batch_that_calls_of_one_side_made_is_not_outside(tmp_path: Path) -> None:
    result = result_of(tmp_path, PLAIN, Recipe(prepared=1.5))
    first = result.first_difference
    assert first is not None
    assert (first.group, first.line) == (Group.ORIGINATES, 7)
    assert first.region
    assert result.outside == ()
    assert result.ladder["data"] is Mark.BEYOND


def test_the_optimizer_pairs_whatever_the_number_of_micro_batches(tmp_path: Path) -> None:
    result = result_of(tmp_path, PLAIN, Recipe(counts_its_backwards=True))
    assert result.counts.undetermined_baseline == result.counts.undetermined_candidate == 0


def test_a_state_that_follows_from_gradients_of_a_step_before_is_no_origin(tmp_path: Path) -> None:
    result = result_of(tmp_path, PLAIN, Recipe(clipped=0.5))
    assert [found.group for found in result.origins] == []
    assert result.outside == ()


def test_what_is_known_equal_stands_before_the_state_that_differs(tmp_path: Path) -> None:
    result = result_of(tmp_path, PLAIN, Recipe(warmed=1.01))
    assert result.settled is not None
    last = result.settled.last_equal
    assert last is not None
    assert (last.function, last.step, last.line) == ("empty", 0, 1)
    assert (result.settled.between_baseline, result.settled.between_candidate) == (0, 1)


def test_an_optimizer_that_was_not_seen_is_not_said_to_agree_when_its_weights_differ(tmp_path: Path) -> None:
    seen = Recipe(optimizer=(), decay=0.9)  # a change of the weights that no call shows
    result = result_of(tmp_path, seen, Recipe(optimizer=(), decay=0.8))
    first = result.first_difference
    assert first is not None
    assert (first.group, first.step) == (Group.OUTSIDE, 1)
    assert first.cause == "parameter fc.weight, which agreed at the begin of step 0"
    assert result.ladder_step == 0
    assert (result.ladder["optimizer"], result.ladder["weights+1"]) == (Mark.UNDETERMINED, Mark.BEYOND)


def test_unpaired_calls_behind_a_named_difference_are_no_second_origin(tmp_path: Path) -> None:
    result = result_of(
        tmp_path, Recipe(optimizer=(("mul_", 0.99), ("add_", 0.9))), Recipe(optimizer=(("mul_", 0.98), ("sub_", 0.9)))
    )
    assert [(found.group, found.function) for found in result.origins] == [(Group.ORIGINATES, "mul_")]
    assert result.origins[0].step == 0


def test_a_generator_that_a_later_draw_read_first_is_no_outside_either(tmp_path: Path) -> None:
    result = result_of(tmp_path, Recipe(drawn_again=True), Recipe(draws=1, drawn_again=True))
    first = result.first_difference
    assert first is not None
    assert (first.group, first.line, first.region) == (Group.ORIGINATES, 8, True)
    assert result.outside == ()
