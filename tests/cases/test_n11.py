"""N-11: Llama eager against SDPA pairs after the first optimizer step, and the attention is named (CP-3, CP-8a)."""

from pathlib import Path

import pytest

from paritrace.compare.result import Comparison, Group
from tests.cases.captures import compare, run_captured

TRAIN = Path(__file__).parents[2] / "examples" / "llama" / "train.py"
REALLY_DIFFERENT = ("self_attn", "masking_utils", "sdpa", "eager", "modeling_llama")


def captured(place: Path, name: str, *arguments: str, steps: str) -> Path:
    done = run_captured(TRAIN, place / name, *arguments, steps=steps)
    assert done.status == 0, done.stderr
    return place / name


@pytest.fixture(scope="module")
def step0(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    place = tmp_path_factory.mktemp("n11-step0")
    sides = [captured(place, attn, "--attn", attn, steps="0:1") for attn in ("eager", "sdpa")]
    return compare(*sides)


@pytest.fixture(scope="module")
def step1(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    place = tmp_path_factory.mktemp("n11-step1")
    sides = [captured(place, attn, "--attn", attn, steps="1:2") for attn in ("eager", "sdpa")]
    return compare(*sides)


@pytest.mark.slow
def test_a_region_originates_at_the_attention_of_layer_0(step0: Comparison) -> None:
    first = step0.first_difference
    assert first is not None
    assert first.region
    assert first.group is Group.ORIGINATES
    assert first.step == 0
    assert first.phase == "forward"
    assert "layers.0.self_attn" in first.module
    assert "eager" in first.baseline_site or "modeling_llama" in first.baseline_site
    assert "sdpa" in first.candidate_site


@pytest.mark.slow
def test_nothing_is_blamed_on_the_outside_at_step_0(step0: Comparison) -> None:
    assert [found for found in step0.origins if found.group is Group.OUTSIDE] == []
    assert [found for found in step0.outside if found.step == 0] == []


@pytest.mark.slow
def test_at_most_a_quarter_is_undetermined_at_step_1(step1: Comparison) -> None:
    counts = step1.counts
    assert counts.calls_baseline > 1000
    assert counts.undetermined_baseline <= 0.25 * counts.calls_baseline
    assert counts.undetermined_candidate <= 0.25 * counts.calls_candidate
