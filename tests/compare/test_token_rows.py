"""Runs with other batches, compared token by token (CP-27): real captures of a small model, with planted mistakes."""

from pathlib import Path

import pytest
import torch

import paritrace
from paritrace.compare.settings import Settings
from tests.compare.token_workloads import (
    LENGTHS,
    Model,
    capture,
    compared,
    found,
    generated,
    observed,
    packed,
    padded,
    perturbed,
    samples,
    single,
)

TOKENS = sum(LENGTHS)
ROUND_OFF = 1e-5


@pytest.fixture
def baseline(tmp_path: Path) -> Path:
    return capture(tmp_path / "baseline", padded)


def test_batches_of_other_shapes_and_orders_align_wholly_inside_round_off(tmp_path: Path, baseline: Path) -> None:
    for name, workload, options in (
        ("left", padded, {"left": True}),
        ("order", padded, {"order": (2, 0, 3, 1)}),
        ("packed", packed, {}),
        ("single", single, {}),
    ):
        told = found(baseline, capture(tmp_path / name, workload, **options))
        assert told.tokens == (TOKENS, 0, 0), name
        assert (told.ambiguous, told.not_comparable, told.num_choices) == (0, {}, 0), name
        outputs = {output.output: output for output in told.outputs}
        assert {"input_ids", "position_ids", "tokens:out", "blocks.1.mlp:out", "lm_head:out", ":out"} <= set(outputs)
        assert all(output.aligned == TOKENS for label, output in outputs.items() if label != "logprobs"), name
        assert outputs["input_ids"].agree == outputs["tokens:out"].agree == TOKENS
        assert told.largest is None or (told.largest.error or 0.0) < ROUND_OFF, name


def test_positions_counted_from_the_padding_on_are_named_at_their_first_token(tmp_path: Path, baseline: Path) -> None:
    """TransformerLens#1609, mlx-lm#1906: the longest sample has no padding, and is right."""
    told = found(baseline, capture(tmp_path / "wrong", padded, left=True, wrong_positions=True))
    assert told.first is not None
    assert told.largest is not None
    assert (told.first.output, told.first.sample, told.first.position) == ("position_ids", "a", 0)
    assert told.first.values == (0.0, 4.0)
    assert told.largest.error is not None
    assert told.largest.error > 0.1
    outputs = {output.output: output for output in told.outputs}
    assert outputs["places:out"].agree == 9, "sample b fills its row"
    assert outputs["input_ids"].agree == TOKENS


@pytest.mark.slow
def test_draws_tell_round_off_from_a_mistake(tmp_path: Path, baseline: Path) -> None:
    draws = list(perturbed(tmp_path / "draws", padded))
    right = found(baseline, capture(tmp_path / "packed", packed), *draws)
    assert right.judged > 0
    assert right.num_draws == 8
    assert right.beyond == 0
    wrong = found(baseline, capture(tmp_path / "wrong", padded, left=True, wrong_positions=True), *draws)
    assert wrong.beyond > 0
    assert wrong.first_beyond is not None
    assert wrong.first_beyond.sample != "b", "the sample without padding is right"
    assert wrong.first_beyond.ratio is not None
    assert wrong.first_beyond.ratio > 1000


def test_a_cache_that_miscounts_is_named_at_the_first_token_from_it(tmp_path: Path) -> None:
    """The prompt is right, whatever its length; the first token that is fed alone is not."""
    whole = capture(tmp_path / "whole", generated, cached=False)
    cached = found(whole, capture(tmp_path / "cached", generated, cached=True))
    assert cached.num_choices == 0
    assert cached.largest is None or (cached.largest.error or 0.0) < ROUND_OFF
    told = found(whole, capture(tmp_path / "wrong", generated, cached=True, off_by=-1))
    outputs = {output.output: output for output in told.outputs}
    logits = outputs["next.logits"]
    assert logits.only_baseline == logits.ambiguous == 0
    assert told.choices
    assert {choice.sample for choice in told.choices} <= set("abcd")
    for choice in told.choices:
        length = LENGTHS["abcd".index(choice.sample)]
        assert choice.position > length, "the first token after the prompt is chosen from the prompt, and is right"
        assert choice.whole
        assert choice.prefix == choice.position
        assert choice.later > 0


def test_a_miscounting_cache_is_told_by_the_first_differing_row(tmp_path: Path) -> None:
    """Both sides from the cache, so that all is bit-equal up to the mistake."""
    right = capture(tmp_path / "right", generated, cached=True)
    told = found(right, capture(tmp_path / "wrong", generated, cached=True, off_by=-1))
    assert told.first is not None
    assert (told.first.output, told.first.sample, told.first.position) == ("places:out", "a", LENGTHS[0])


def test_the_tokens_of_samples_that_part_are_one_statement_each(tmp_path: Path) -> None:
    right = capture(tmp_path / "right", generated, cached=True)
    told = found(right, capture(tmp_path / "biased", generated, cached=True, bias=2.0))
    assert told.num_choices > 0
    assert told.differ == sum(o.differ for o in told.outputs)
    for choice in told.choices:
        assert choice.whole
        assert choice.output in (":out", "next.logits")
        assert choice.margins is not None
        assert min(choice.margins) >= 0.0
    parted = {choice.sample for choice in told.choices}
    ids = next(output for output in told.outputs if output.output == "input_ids")
    assert ids.differ == len(parted), "of each sample the first other token differs, the others follow it"


@pytest.mark.parametrize(
    ("tags", "comparable"),
    [((None, None), True), (("raw_logprobs", "after_temperature"), False), ((None, "after_temperature"), False)],
)
def test_log_probabilities_of_unlike_meaning_are_not_compared(
    tmp_path: Path, tags: tuple[str | None, str | None], comparable: bool
) -> None:
    runs = [
        capture(tmp_path / name, scored, temperature, tag)
        for name, temperature, tag in (("trainer", 1.0, tags[0]), ("engine", 0.6, tags[1]))
    ]
    (logprobs,) = (output for output in found(*runs).outputs if output.output == "logprobs")
    if comparable:
        assert logprobs.differ == logprobs.aligned
        assert logprobs.not_comparable == {}
        assert logprobs.scale is None, "after a softmax no one factor is left, and none is claimed"
    else:
        assert logprobs.not_comparable == {"semantics": logprobs.aligned}
        assert logprobs.differ == 0


def scored(model: Model, temperature: float, tag: str | None) -> None:
    text = samples()[1][None]
    length = text.shape[1]
    positions = torch.arange(length)[None]
    rows = paritrace.rows(["b"], input_ids=text)
    logits = model(text, positions, torch.ones(1, length, length, dtype=torch.bool).tril())
    rows.observe("scaled.logits", logits / temperature)
    observed(rows[:, :-1], logits[:, :-1], text[:, 1:], temperature=temperature, tag=tag)


def test_logits_under_another_temperature_show_their_one_factor(tmp_path: Path) -> None:
    runs = [capture(tmp_path / str(value), scored, value, None) for value in (1.0, 0.5)]
    (logits,) = (output for output in found(*runs).outputs if output.output == "scaled.logits")
    assert logits.scale == pytest.approx(2.0)


def repeated(model: Model, *, other: bool) -> None:
    text = samples()[0][None]
    allowed = torch.ones(1, text.shape[1], text.shape[1], dtype=torch.bool).tril()
    for number in range(2):
        paritrace.rows(["a"], input_ids=text)
        model(text, torch.arange(text.shape[1])[None] + (number if other else 0), allowed)


def test_a_token_that_is_there_twice_is_one_if_alike_and_undetermined_if_not(tmp_path: Path, baseline: Path) -> None:
    alike = found(capture(tmp_path / "once", repeated, other=False), capture(tmp_path / "twice", repeated, other=False))
    assert alike.ambiguous == 0
    assert alike.agree == alike.aligned > 0
    unlike = found(baseline, capture(tmp_path / "unlike", repeated, other=True))
    outputs = {output.output: output for output in unlike.outputs}
    assert outputs["tokens:out"].agree == LENGTHS[0]
    assert outputs["lm_head:out"].ambiguous == LENGTHS[0]
    assert outputs["lm_head:out"].differ == 0


def test_samples_of_one_side_are_named_and_nothing_is_claimed_of_them(tmp_path: Path, baseline: Path) -> None:
    told = found(baseline, capture(tmp_path / "one", repeated, other=False))
    assert told.samples_only == {"baseline": ("b", "c", "d")}
    assert told.num_samples_only == {"baseline": 3}
    assert told.tokens == (LENGTHS[0], TOKENS - LENGTHS[0], 0)
    assert told.first is None or told.first.sample == "a"


def test_swapping_the_sides_mirrors_the_counts(tmp_path: Path, baseline: Path) -> None:
    other = capture(tmp_path / "wrong", padded, left=True, wrong_positions=True)
    one, two = found(baseline, other), found(other, baseline)
    assert (one.aligned, one.agree, one.differ) == (two.aligned, two.agree, two.differ)
    assert one.tokens == (two.tokens[0], two.tokens[2], two.tokens[1])


def test_settings_leave_out_and_rename(tmp_path: Path, baseline: Path) -> None:
    other = capture(tmp_path / "packed", packed)
    told = compared(baseline, other, settings=Settings(ignore=("blocks.*", "lm_head"))).result.token_rows
    assert told is not None
    assert {output.output for output in told.outputs} == {
        "input_ids",
        "position_ids",
        "tokens:out",
        "places:out",
        ":out",
    }
    later = compared(baseline, other, settings=Settings(steps=(1, None))).result.token_rows
    assert later is None, "no rows of these steps"


def test_runs_without_rows_have_no_section(tmp_path: Path) -> None:
    runs = []
    for name in ("a", "b"):
        with paritrace.trace(tmp_path / name):
            torch.nn.Linear(2, 2)(torch.ones(1, 2))
        runs.append(tmp_path / name)
    assert compared(*runs).result.token_rows is None
