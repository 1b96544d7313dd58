"""The Llama example: eager against SDPA, and a wrong epsilon behind it, from the commands of its README."""

import shlex
from pathlib import Path

import pytest

from paritrace.compare.result import Comparison, Group
from tests.cases.captures import compare, run_captured

EXAMPLE = Path(__file__).parents[2] / "examples" / "llama"
TRAIN = EXAMPLE / "train.py"
COMMON = ("--level", "module", "--level", "op", "--steps", "0:2", "train.py")


def captures() -> dict[str, tuple[str, ...]]:
    """The captures that the README names: run directory -> arguments of train.py."""
    found: dict[str, tuple[str, ...]] = {}
    for line in (EXAMPLE / "README.md").read_text(encoding="utf-8").splitlines():
        words = shlex.split(line) if line.startswith("paritrace run ") else []
        if words:
            assert words[2 : 4 + len(COMMON)] == ["-o", words[3], *COMMON]
            found[words[3]] = tuple(words[4 + len(COMMON) :])
    return found


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("llama")
    variants = captures()
    assert set(variants) == {"eager", "sdpa", "sdpa-eps"}
    for name, arguments in (*variants.items(), ("eager-eps", ("--attn", "eager", "--eps", "1e-5"))):
        done = run_captured(TRAIN, place / name, *arguments, steps="0:2")
        assert done.status == 0, done.stderr
    return {name: place / name for name in (*variants, "eager-eps")}


def first(result: Comparison) -> tuple[str, str, int, str]:
    assert result.first_difference is not None
    found = result.first_difference
    return found.group.value, found.module, found.step, found.phase


@pytest.mark.slow
def test_eager_against_sdpa_parts_at_the_attention_of_layer_0(runs: dict[str, Path]) -> None:
    result = compare(runs["eager"], runs["sdpa"])
    assert first(result) == (Group.ORIGINATES, "model.layers.0.self_attn", 0, "forward")
    assert result.first_difference is not None
    assert result.first_difference.region
    assert not [found for found in result.origins if found.group is Group.OUTSIDE]
    assert any("attn_implementation" in change.name for change in result.changed)


@pytest.mark.slow
def test_the_wrong_epsilon_alone_parts_at_the_first_norm(runs: dict[str, Path]) -> None:
    result = compare(runs["eager"], runs["eager-eps"])
    group, module, step, phase = first(result)
    assert (group, step, phase) == (Group.ORIGINATES, 0, "forward")
    assert module == "model.layers.0.input_layernorm"
    assert any("rms_norm_eps" in change.name for change in result.changed)


@pytest.mark.slow
def test_both_at_once_show_the_epsilon_first_because_its_norm_runs_first(runs: dict[str, Path]) -> None:
    result = compare(runs["eager"], runs["sdpa-eps"])
    assert first(result)[1] == "model.layers.0.input_layernorm"
    assert {finding.strength for finding in result.findings} == {"bits only"}
    assert {"model.layers.0.input_layernorm"} <= {found.module for found in result.origins}
