"""The Llama example: eager against SDPA, and a wrong epsilon behind it, from the commands of its README."""

import shlex
from pathlib import Path

import pytest

from paritrace.compare.engine import compare as compare_runs
from paritrace.compare.judged_by import JudgedBy
from paritrace.compare.judgement import PERTURBED
from paritrace.compare.result import Comparison, Group, Mark
from paritrace.runs.draws import draws_of
from paritrace.runs.reading import open_run
from tests.cases.captures import compare, run_captured, run_python

EXAMPLE = Path(__file__).parents[2] / "examples" / "llama"
TRAIN = EXAMPLE / "train.py"
COMMON = ("--level", "module", "--level", "op", "--steps", "0:2", "train.py")


def captures() -> dict[str, tuple[str, ...]]:
    """The captures that the README names: run directory -> arguments of train.py."""
    found: dict[str, tuple[str, ...]] = {}
    for line in (EXAMPLE / "README.md").read_text(encoding="utf-8").splitlines():
        words = shlex.split(line) if line.startswith("paritrace run ") and "--level op" in line else []
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


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two layers, eager, with eight perturbed draws; SDPA alone, and SDPA with the wrong epsilon."""
    place = tmp_path_factory.mktemp("draws")
    variants: dict[str, tuple[str, ...]] = {"eager": ("--attn", "eager"), "sdpa": ("--attn", "sdpa")}
    variants["sdpa-eps"] = ("--attn", "sdpa", "--eps", "1e-5")
    for name, arguments in variants.items():
        perturb = ("--perturb", "8") if name == "eager" else ()
        options = ("-o", str(place / name), *perturb, "--steps", "0:2")
        command = ("-m", "paritrace", "run", *options, str(TRAIN), "--layers", "2", *arguments)
        done = run_python(*command, directory=EXAMPLE)
        assert done.status == 0, done.stderr
    return {name: place / name for name in variants}


def compare_by_draws(base: Path, candidate: Path) -> Comparison:
    a, b = open_run(base), open_run(candidate)
    by = JudgedBy(PERTURBED, tuple(open_run(path) for path in draws_of(a.folder)))
    return compare_runs(a, b, by=by).result


@pytest.mark.slow
def test_cp8b_behind_the_other_attention_the_norm_alone_leaves_round_off(drawn: dict[str, Path]) -> None:
    result = compare_by_draws(drawn["eager"], drawn["sdpa-eps"])
    assert result.envelope is not None
    assert result.envelope.num_draws == 8
    exits = [found for found in result.findings if found.place.group is Group.EXCEEDS]
    assert [found.place.module for found in exits] == ["model.layers.0.input_layernorm"]
    assert exits[0] is result.findings[0]
    assert exits[0].ratio is not None
    assert exits[0].ratio > 1000


@pytest.mark.slow
def test_cp8b_the_other_attention_alone_stays_inside(drawn: dict[str, Path]) -> None:
    result = compare_by_draws(drawn["eager"], drawn["sdpa"])
    assert result.envelope is not None
    assert result.envelope.beyond == 0
    assert result.envelope.judged > 100
    assert result.ladder["forward"] is Mark.INSIDE
