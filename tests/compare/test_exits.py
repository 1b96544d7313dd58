"""Findings by envelope: a fault behind a benign change is named, the benign change is not (CP-8b, CP-10, CP-10a)."""

from pathlib import Path

import pytest
import torch
from torch import nn

import paritrace
from paritrace.compare.engine import compare
from paritrace.compare.envelope import MIN_DRAWS
from paritrace.compare.judged_by import JudgedBy
from paritrace.compare.judgement import PERTURBED, REPEATS
from paritrace.compare.result import Comparison, Group, Mark
from paritrace.compare.settings import Settings
from paritrace.runs.draws import draw_path, draws_of
from paritrace.runs.reading import open_run

DRAWS = 8


class Norm(nn.Module):
    def __init__(self, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(32))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * self.weight


class Mix(nn.Module):
    """A sum in one of two orders: the same up to round-off."""

    def __init__(self, *, backwards: bool) -> None:
        super().__init__()
        self.backwards = backwards
        self.project = nn.Linear(32, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = torch.split(x * self.project.weight[0], 4, dim=-1)
        total = torch.zeros_like(parts[0])
        for part in reversed(parts) if self.backwards else parts:
            total = total + part
        return self.project(x) + total.repeat(1, 8)  # type: ignore[no-any-return]


class Spoiled(nn.GELU):
    """One value in 1,536 turns into NaN: no sample may show it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = super().forward(x)
        found[5, 7] = torch.nan
        return found


class Model(nn.Module):
    def __init__(self, *, eps: float, backwards: bool, bent: float, renewed: bool, later: bool) -> None:
        super().__init__()
        self.embed = nn.Embedding(64, 32)
        self.register_buffer("places", torch.linspace(0.0, 1e-9, 32))
        self.places: torch.Tensor
        self.later = later
        self.mix = Mix(backwards=backwards)
        self.norm = Norm(eps)
        self.mlp = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32))
        self.head = nn.Linear(32, 64)
        self.bent = bent
        self.renewed = renewed
        self.register_buffer("largest", torch.ones(1))
        self.largest: torch.Tensor

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        mixed = self.mix(self.embed(tokens))
        positions = torch.arange(len(tokens))
        if self.later:
            positions = positions + torch.ones_like(positions)
        x = self.norm(mixed + self.places[positions].unsqueeze(-1))
        if self.renewed:
            self.largest.copy_(x.detach().abs().amax())
        return self.head((x + self.mlp(x)) * self.bent)  # type: ignore[no-any-return]


class Wrapper(nn.Module):
    """Holds a model as the one that `torch.compile` makes does."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self._orig_mod = model

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self._orig_mod(tokens)  # type: ignore[no-any-return]


def capture(
    run: Path,
    *,
    seed: int = 0,
    eps: float = 1e-5,
    backwards: bool = False,
    bent: float = 1.0,
    bent_gradient: float = 1.0,
    decayed: float = 1.0,
    written: float = 1.0,
    spoiled: bool = False,
    renewed: bool = True,
    later: bool = False,
    wrapped: bool = False,
    levels: tuple[str, ...] = ("module",),
) -> Path:
    torch.manual_seed(0)
    model = Model(eps=eps, backwards=backwards, bent=bent, renewed=renewed, later=later)
    if spoiled:
        model.mlp[1] = Spoiled()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    whole = Wrapper(model) if wrapped else model
    with paritrace.trace(run, steps=(0, 2), diff=False, perturb_seed=seed, level=levels):
        for step in range(2):
            tokens = torch.randint(64, (24,))
            if written != 1.0 and not step:
                with torch.no_grad():
                    model.get_parameter("mlp.0.weight")[3].mul_(written)
            torch.autograd.backward(nn.functional.cross_entropy(whole(tokens), tokens.roll(1)))
            with torch.no_grad():
                if bent_gradient != 1.0:
                    gradient = model.get_parameter("mlp.0.weight").grad
                    assert gradient is not None
                    gradient.mul_(bent_gradient)
                optimizer.step()
                if decayed != 1.0:
                    model.get_parameter("mlp.2.weight").mul_(decayed)
            optimizer.zero_grad()
    return run


@pytest.fixture(scope="module")
def baseline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = capture(tmp_path_factory.mktemp("envelope") / "a")
    for seed in range(1, DRAWS + 1):
        capture(draw_path(run, seed), seed=seed)
    return run


def judged(
    baseline: Path,
    candidate: Path,
    *,
    ranks: tuple[int, ...] | None = None,
    envelope: Path | None = None,
    strip: tuple[str, ...] = (),
) -> Comparison:
    a, b = open_run(baseline), open_run(candidate)
    by = JudgedBy(PERTURBED, tuple(open_run(path) for path in draws_of(envelope or a.folder)))
    return compare(a, b, Settings(ranks=ranks, strip_prefix=strip), by=by).result


def test_cp8b_a_wrong_epsilon_behind_a_benign_change_is_the_finding(baseline: Path, tmp_path: Path) -> None:
    result = judged(baseline, capture(tmp_path / "b", eps=1e-3, backwards=True))
    first = result.findings[0]
    assert (first.place.group, first.place.module, first.place.step) == (Group.EXCEEDS, "norm", 0)
    assert [f.place.module for f in result.findings if f.place.group is Group.EXCEEDS] == ["norm"]
    assert first.ratio is not None
    assert first.reached is not None
    assert first.ratio > 100 * first.reached
    assert "the most extreme of 8 left-out perturbed baselines reached" in first.strength
    assert result.ladder["forward"] is Mark.BEYOND
    assert result.ledger is not None  # CP-16: the same figures, output by output
    entries = {(entry.module, entry.step, entry.phase): entry for entry in result.ledger.entries}
    norm = entries["norm", 0, "forward"]
    assert (norm.beyond, norm.error, norm.expected) == (True, first.measured, first.expected)
    assert norm.inside_up_to is not None
    assert norm.error is not None
    assert norm.error > norm.inside_up_to > (norm.expected or 0.0) > 0.0
    assert entries["mix", 0, "forward"].beyond is False
    assert sum(entry.beyond is True for entry in result.ledger.entries) > 1


def test_cp8b_the_benign_change_alone_stays_inside(baseline: Path, tmp_path: Path) -> None:
    result = judged(baseline, capture(tmp_path / "b", backwards=True))
    assert result.envelope is not None
    assert (result.envelope.num_draws, result.envelope.beyond, result.envelope.why) == (DRAWS, 0, "")
    assert result.envelope.judged > 20
    assert result.counts.different > 0, "its bits differ"
    assert not [f for f in result.findings if f.place.group is Group.EXCEEDS]
    assert all(f.strength.startswith("inside round-off") for f in result.findings)
    assert Mark.BEYOND not in result.ladder.values()
    judged_rungs = ("forward", "backward", "reduced grads", "optimizer", "weights+1")
    assert {result.ladder[rung] for rung in judged_rungs} == {Mark.INSIDE}


def test_cp18_an_envelope_that_is_kept_judges_the_next_candidate_alike(baseline: Path, tmp_path: Path) -> None:
    a, b = open_run(baseline), open_run(capture(tmp_path / "b", eps=1e-3))
    by = JudgedBy(PERTURBED, tuple(open_run(path) for path in draws_of(a.folder)), made={})
    first = compare(a, b, by=by).result
    assert by.made is not None
    assert set(by.made) == {(0, 0)}
    again = compare(a, b, by=by._replace(runs=())).result
    assert again.findings == first.findings
    assert again.envelope == first.envelope


def test_cp8b_code_of_a_module_itself_is_named_by_the_module(baseline: Path, tmp_path: Path) -> None:
    """The root multiplies between its children: none of them is at fault, the root is."""
    result = judged(baseline, capture(tmp_path / "b", bent=1.001))
    found = [f.place.module for f in result.findings if f.place.group is Group.EXCEEDS]
    assert found == [""]


def test_cp8b_an_equal_candidate_is_not_judged_to_differ(baseline: Path, tmp_path: Path) -> None:
    result = judged(baseline, capture(tmp_path / "b"))
    assert (result.findings, result.counts.different) == ((), 0)


def test_cp8b_a_gradient_alone_that_is_out_is_named_and_so_is_its_rung(baseline: Path, tmp_path: Path) -> None:
    """No module's output shows it before the next step: the gradients that the optimizer is given are judged."""
    result = judged(baseline, capture(tmp_path / "b", backwards=True, bent_gradient=1.01))
    first = result.findings[0]
    assert (first.place.group, first.place.level, first.place.slot) == (Group.EXCEEDS, "digest", "mlp.0.weight")
    assert (first.place.step, first.place.phase) == (0, "backward")
    assert first.sentence.startswith("gradient mlp.0.weight leaves the envelope at step 0, backward (rank 0)")
    assert first.ratio is not None
    assert first.reached is not None
    assert first.ratio > 100 * first.reached
    assert [f.place.module for f in result.findings if f.place.group is Group.EXCEEDS] == ["mlp.0"]
    assert (result.ladder["backward"], result.ladder["reduced grads"]) == (Mark.INSIDE, Mark.BEYOND)


def test_cp6_states_of_a_wrapped_model_are_judged_as_those_of_the_model(baseline: Path, tmp_path: Path) -> None:
    candidate = capture(tmp_path / "b", backwards=True, bent_gradient=1.01, wrapped=True)
    first = judged(baseline, candidate, strip=("_orig_mod.",)).findings[0]
    assert (first.place.group, first.place.level, first.place.slot) == (Group.EXCEEDS, "digest", "mlp.0.weight")


def test_cp8b_a_gradient_that_is_out_stands_before_what_leaves_a_step_later(baseline: Path, tmp_path: Path) -> None:
    """The weights that it made leave in the next forward pass, where what comes in is inside: no first place."""
    result = judged(baseline, capture(tmp_path / "b", backwards=True, bent_gradient=50.0))
    named = [(f.place.step, f.place.phase) for f in result.findings if f.place.group is Group.EXCEEDS]
    assert named == [(0, "backward"), (1, "forward")]
    assert result.findings[0].place.slot == "mlp.0.weight"


def test_cp8b_a_weight_that_is_written_stands_before_what_leaves_behind_it(baseline: Path, tmp_path: Path) -> None:
    """Draws all start from the same weights, so that none says anything of it: what reads it leaves, and is no exit."""
    result = judged(baseline, capture(tmp_path / "b", backwards=True, written=1.5))
    first = result.findings[0]
    assert (first.place.group, first.place.module, first.place.slot) == (Group.OUTSIDE, "mlp.0", "weight")
    assert (first.place.step, first.place.phase) == (0, "forward")
    assert first.strength.startswith("not judged itself; mlp.0, the first behind it that is judged and out, is beyond")
    assert not [f for f in result.findings if f.place.group is Group.EXCEEDS]


def test_cp8b_a_buffer_that_is_not_renewed_is_named_by_its_module(baseline: Path, tmp_path: Path) -> None:
    """Nothing reads it before the next step: it is out while all that the modules gave is inside."""
    result = judged(baseline, capture(tmp_path / "b", backwards=True, renewed=False))
    first = result.findings[0]
    assert (first.place.group, first.place.function, first.place.slot) == (Group.EXCEEDS, "buffer", "largest")
    assert (first.place.step, first.place.phase) == (0, "forward")
    assert first.sentence.startswith("buffer largest leaves the envelope at step 0, forward (rank 0)")
    assert len([f for f in result.findings if f.place.group is Group.EXCEEDS]) == 1


def test_cp8b_what_an_optimizer_makes_of_good_gradients_is_named(baseline: Path, tmp_path: Path) -> None:
    result = judged(baseline, capture(tmp_path / "b", backwards=True, decayed=1.001))
    first = result.findings[0]
    assert (first.place.group, first.place.function, first.place.slot) == (Group.EXCEEDS, "parameter", "mlp.2.weight")
    assert (first.place.step, first.place.phase) == (0, "optimizer")
    marks = [result.ladder[rung] for rung in ("reduced grads", "optimizer", "weights+1")]
    assert marks == [Mark.INSIDE, Mark.BEYOND, Mark.BEYOND]


def test_cp8b_values_that_turn_not_finite_are_out_wherever_they_stand(baseline: Path, tmp_path: Path) -> None:
    result = judged(baseline, capture(tmp_path / "b", backwards=True, spoiled=True))
    first = result.findings[0]
    assert (first.place.group, first.place.module, first.figure) == (Group.EXCEEDS, "mlp.1", "non_finite")
    told = "beyond round-off: values that are not finite, in none of 8 perturbed baselines; false at most 1 in 9"
    assert first.strength == told
    assert first.ratio is None, "what is not finite has no size"
    assert [f.place.module for f in result.findings if f.place.group is Group.EXCEEDS] == ["mlp.1"]


def test_cp10_repeats_that_agree_have_no_width_and_say_so(tmp_path: Path) -> None:
    a = capture(tmp_path / "a")
    repeats = tuple(open_run(capture(tmp_path / f"r{n}", seed=int(n == 3))) for n in range(4))  # the last one differs
    result = compare(open_run(a), open_run(capture(tmp_path / "b", eps=1e-3)), by=JudgedBy(REPEATS, repeats)).result
    assert result.envelope is not None
    assert result.envelope.num_draws == 4
    assert result.envelope.why.endswith("do most draws differ from the baseline: no spread")
    assert all(f.strength == "bits only" for f in result.findings)


def test_cp10_three_repeats_are_too_few(tmp_path: Path) -> None:
    a = capture(tmp_path / "a")
    repeats = tuple(open_run(capture(tmp_path / f"r{n}", seed=n + 1)) for n in range(3))
    result = compare(open_run(a), open_run(capture(tmp_path / "b", eps=1e-3)), by=JudgedBy(REPEATS, repeats)).result
    assert result.envelope is not None
    assert result.envelope.why == "3 of at least 4 draws"
    codes = {limit.code for limit in result.limits}
    assert "noise_not_estimable" in codes
    assert "no_envelope" not in codes, "there is one, of too few"


def test_cp10_the_order_of_draws_does_not_matter(baseline: Path, tmp_path: Path) -> None:
    a, b = open_run(baseline), open_run(capture(tmp_path / "b", eps=1e-3, backwards=True))
    runs = tuple(open_run(path) for path in draws_of(a.folder))
    one = compare(a, b, by=JudgedBy(PERTURBED, runs)).result
    other = compare(a, b, by=JudgedBy(PERTURBED, runs[::-1])).result
    assert one == other


def test_cp10_the_rate_over_several_ranks_is_one_for_all_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A draw is one job: on the screen the rate is told as that of all ranks together (CP-9)."""
    for rank in ("0", "1"):
        for name, value in (("RANK", rank), ("LOCAL_RANK", rank), ("WORLD_SIZE", "2")):
            monkeypatch.setenv(name, value)
        run = capture(tmp_path / "a")
        for seed in range(1, MIN_DRAWS + 1):
            capture(draw_path(run, seed), seed=seed)
        capture(tmp_path / "b", eps=1e-3)
    both = judged(tmp_path / "a", tmp_path / "b")
    assert both.ranks_compared == (0, 1)
    assert both.findings[0].strength.endswith("; false at most 1 in 5, all ranks together")
    assert both.envelope is not None
    assert both.envelope.false_rate == 1 / (MIN_DRAWS + 1)
    alone = judged(tmp_path / "a", tmp_path / "b", ranks=(1,))
    assert alone.findings[0].strength.endswith("; false at most 1 in 5")


def test_cp8b_other_whole_numbers_are_no_round_off_however_little_they_move_the_output(
    baseline: Path, tmp_path: Path
) -> None:
    ours = capture(tmp_path / "a", levels=("module", "op"))
    theirs = capture(tmp_path / "b", later=True, backwards=True, levels=("module", "op"))
    result = judged(ours, theirs, envelope=baseline)
    first = result.findings[0]
    assert (first.place.group, first.place.step, first.place.phase) == (Group.ORIGINATES, 0, "forward")
    assert first.place.function in ("aten.add.Tensor", "aten.ones_like.default")
    assert first.strength.startswith("no round-off of its own: whole numbers alone go in and come out")
    assert "inside round-off" in first.strength
    assert not any(f.place.group is Group.EXCEEDS for f in result.findings)
    others = [found.strength for found in result.findings[1:] if found.place.module == "mix"]
    assert others  # earlier, and inside: it stands behind what no round-off makes
    assert all(strength.startswith("inside round-off") for strength in others)


def test_cp10_a_draw_that_is_not_finite_somewhere_leaves_nothing_beyond(baseline: Path, tmp_path: Path) -> None:
    a, b = open_run(baseline), open_run(capture(tmp_path / "b", eps=1e-3, spoiled=True))
    spoiled = open_run(capture(tmp_path / "draw", seed=9, spoiled=True))
    draws = (*(open_run(path) for path in draws_of(a.folder)), spoiled)
    result = compare(a, b, Settings(), by=JudgedBy(PERTURBED, draws)).result
    assert result.findings
    assert not any(found.place.group is Group.EXCEEDS for found in result.findings)
    assert result.envelope is not None
    assert (result.envelope.num_draws, result.envelope.beyond) == (9, 0)
    told = [found.strength for found in result.findings if found.ratio is not None]
    assert told
    assert all("one of the perturbed baselines has values that are not finite" in strength for strength in told)
