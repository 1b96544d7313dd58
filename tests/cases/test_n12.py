"""N-12: behind another attention a wrong epsilon is a finding of its own, and the attention is told to be inside."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from paritrace.compare.engine import compare
from paritrace.compare.judged_by import JudgedBy
from paritrace.compare.judgement import PERTURBED
from paritrace.compare.result import Comparison, Finding, Group, Mark
from paritrace.reports.first_screen import first_screen
from paritrace.runs.draws import draw_path, draws_of
from paritrace.runs.reading import open_run
from tests.cases.llamas import Recipe, train

DRAWS = 8
NORM = "model.layers.0.input_layernorm"
ATTENTION = "model.layers.0.self_attn"


def with_draws(place: Path, recipe: Recipe) -> Path:
    run = train(place / "eager", recipe)
    for seed in range(1, DRAWS + 1):
        train(draw_path(run, seed), replace(recipe, draw=seed))
    return run


def judged(baseline: Path, candidate: Path) -> Comparison:
    a = open_run(baseline)
    by = JudgedBy(PERTURBED, tuple(open_run(path) for path in draws_of(a.folder)))
    return compare(a, open_run(candidate), by=by).result


def of_group(result: Comparison, group: Group) -> list[Finding]:
    return [found for found in result.findings if found.place.group is group]


def require_both(result: Comparison) -> Finding:
    """The norm beyond round-off as the first finding, the attention inside as another; returns the first."""
    first = result.findings[0]
    assert (first.place.group, first.place.module, first.place.step) == (Group.EXCEEDS, NORM, 0)
    assert [found.place.module for found in of_group(result, Group.WITHIN)] == [ATTENTION]
    assert first.ratio is not None
    assert first.reached is not None
    assert first.ratio > first.reached
    assert first.bias is not None
    assert first.bias_reached is not None
    assert "bias" in first.strength or "shifted to one side" in first.strength
    assert first.consequences > 0
    return first


@pytest.mark.slow
@pytest.mark.parametrize("levels", [("module",), ("module", "op")], ids=["module", "module and op"])
def test_n12_float32_names_the_norm_and_the_attention(tmp_path: Path, levels: tuple[str, ...]) -> None:
    recipe = Recipe(levels=levels)
    baseline = with_draws(tmp_path, recipe)
    result = judged(baseline, train(tmp_path / "b", replace(recipe, attention="sdpa", eps=1e-5)))
    first = require_both(result)
    assert len(of_group(result, Group.EXCEEDS)) == 1, "what follows is counted"
    assert first.figure == "error"
    assert first.ratio is not None
    assert first.ratio > 1000
    assert first.bias is not None
    assert first.bias_reached is not None
    assert first.bias > first.bias_reached
    assert first.measured is not None
    assert first.expected is not None
    assert first.ratio == pytest.approx(first.measured / first.expected)
    assert result.first_difference is not None, "bits differ as they do without an envelope"
    screen = first_screen(result)
    assert "ratio" in screen
    assert "bias" in screen
    assert "inside round-off" in screen, "the line of the attention says that it is no fault"
    assert len(screen.splitlines()) <= 34
    plain = judged(baseline, train(tmp_path / "plain", replace(recipe, attention="sdpa")))
    assert plain.envelope is not None
    assert plain.envelope.beyond == 0
    assert not of_group(plain, Group.EXCEEDS)
    assert plain.ladder["forward"] is Mark.INSIDE


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_n12_bfloat16_finds_the_epsilon_by_its_bias(tmp_path: Path, seed: int) -> None:
    """The error itself is below what round-off does: the shift of the samples to one side shows it (E17, E19)."""
    recipe = Recipe(dtype=torch.bfloat16, seed=seed)
    baseline = with_draws(tmp_path, recipe)
    first = require_both(judged(baseline, train(tmp_path / "b", replace(recipe, attention="sdpa", eps=1e-5))))
    assert first.measured is not None
    assert first.expected is not None
    assert first.measured < 3 * first.expected, "the size of the error alone says nothing"
    assert first.bias is not None
    assert first.bias_reached is not None
    assert first.bias > first.bias_reached
    plain = judged(baseline, train(tmp_path / "plain", replace(recipe, attention="sdpa")))
    assert not of_group(plain, Group.EXCEEDS)
