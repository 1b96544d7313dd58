"""A resumed run beside its uninterrupted continuation: the state at the boundary, then the steps (CP-28, A-18)."""

from pathlib import Path

import pytest
import torch

from paritrace.compare.result import Comparison
from paritrace.compare.resume_boundary import parse_resume
from paritrace.errors import Outcome, RequestError
from paritrace.reports.first_screen import first_screen
from paritrace.reports.headline import statement
from tests.compare.resumed_training import BOUNDARY, compared, train


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("checkpoint") / "kept.pt"


@pytest.fixture(scope="module")
def whole(checkpoint: Path) -> Path:
    return train(checkpoint.parent / "whole", checkpoint)


def apart(of: Comparison) -> dict[str, list[str]]:
    """The parts that differ, with the names of what does."""
    assert of.resume is not None
    return {
        part.group: [state.name for state in part.states if not state.idle] for part in of.resume.parts if part.differ
    }


def test_a_right_resume_shows_no_difference_and_claims_no_equal_state(
    tmp_path: Path, whole: Path, checkpoint: Path
) -> None:
    found = compared(whole, train(tmp_path / "run", checkpoint, resume=True))
    assert apart(found) == {}
    assert found.steps_compared == (4, 5, 6)
    assert found.counts.different == found.counts.undetermined_baseline == 0
    assert found.counts.paired == found.counts.ok > 0
    anchor, sentence, strength = statement(found)
    assert anchor == "resume"
    assert sentence.startswith("The resumed run begins step 4 as its continuation does")
    assert "no equal state is claimed; not captured: python_objects" in strength
    assert found.resume is not None
    groups = {part.group: part for part in found.resume.parts}
    assert (groups["parameter"].agree, groups["optimizer_state"].agree) == (4, 12)
    idle = {state.name for state in groups["rng"].states if state.idle}  # numpy's: whether a test before drew from it
    assert idle - {"numpy"} == {"python"}, "nobody drew from it"


@pytest.mark.parametrize(
    ("forget", "group", "name"),
    [
        ("weights", "parameter", "0.bias"),
        ("optimizer", "optimizer_state", "0.bias:exp_avg"),
        ("rng", "rng", "torch_cpu"),
        ("scheduler", "scheduler", "StepLR.last_epoch"),
        ("data", "batch", "args[0]"),
    ],
)
def test_what_a_checkpoint_forgot_is_named_before_the_steps(
    tmp_path: Path, whole: Path, checkpoint: Path, forget: str, group: str, name: str
) -> None:
    found = compared(whole, train(tmp_path / "run", checkpoint, resume=True, forget=forget))
    differing = apart(found)
    assert list(differing) == [group], "nothing else differs at the boundary"
    assert differing[group][0] == name
    anchor, sentence, _ = statement(found)
    assert anchor == "resume"
    assert sentence.startswith(f"The resumed run parts from its continuation before step {BOUNDARY}: ")
    assert name in sentence
    screen = first_screen(found)
    assert len(screen.splitlines()) <= 34
    assert max(map(len, screen.splitlines())) <= 100


def test_a_forgotten_optimizer_state_is_said_to_be_none(tmp_path: Path, whole: Path, checkpoint: Path) -> None:
    found = compared(whole, train(tmp_path / "run", checkpoint, resume=True, forget="optimizer"))
    assert found.resume is not None
    (part,) = (part for part in found.resume.parts if part.differ)
    assert {state.missing for state in part.states} == {"candidate"}
    assert part.differ == 12
    assert "of which the resumed run has none" in statement(found)[1]


def test_momentum_that_was_never_made_is_no_difference(tmp_path: Path, checkpoint: Path) -> None:
    def plain(parameters: list[torch.nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.SGD(parameters, lr=0.1)

    own = tmp_path / "own.pt"
    base = train(tmp_path / "whole", own, optimizers=plain)
    found = compared(base, train(tmp_path / "run", own, resume=True, optimizers=plain))
    assert found.resume is not None
    assert apart(found) == {}
    assert "optimizer_state" not in {part.group for part in found.resume.parts}


@pytest.mark.parametrize(("number", "text"), [(-BOUNDARY, "4"), (-BOUNDARY, "4=0"), (100, "4=104")])
def test_a_script_that_counts_otherwise_is_read_in_the_baselines_steps(
    tmp_path: Path, whole: Path, checkpoint: Path, number: int, text: str
) -> None:
    run = train(tmp_path / "run", checkpoint, resume=True, number=number)
    found = compared(whole, run, text)
    assert found.steps_compared == (4, 5, 6)
    assert found.counts.ok == found.counts.paired > 0
    assert found.resume is not None
    expected = "as declared" if "=" in text else "counts from 0 again: its step 0 is taken for step 4"
    assert expected in found.resume.assumed
    assert found.settings["resume"] == f"4: {found.resume.assumed}"


def test_a_run_that_was_restarted_is_compared_with_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first session went past the checkpoint before it ended: that is the continuation."""
    own = tmp_path / "own.pt"
    torchrun = {"RUN_ID": "job", "RESTART_COUNT": "0", "MAX_RESTARTS": "3"}
    ranks = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1"}
    for name, value in ({f"TORCHELASTIC_{name}": value for name, value in torchrun.items()} | ranks).items():
        monkeypatch.setenv(name, value)
    run = train(tmp_path / "run", own)
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    train(run, own, resume=True, forget="rng")
    found = compared(run, run)
    assert list(apart(found)) == ["rng"]
    assert found.resume is not None
    (ours,), (theirs,) = found.resume.sessions["baseline"], found.resume.sessions["candidate"]
    assert ours != theirs


@pytest.mark.parametrize("text", ["", "x", "4=", "=4", "-1", "4:5", "٤", "9" * 20])
def test_what_is_no_step_is_refused(text: str) -> None:
    with pytest.raises(RequestError) as refused:
        parse_resume(text)
    assert (refused.value.code, refused.value.outcome) == ("bad_resume", Outcome.REFUSED)


@pytest.mark.parametrize("text", ["40", "4=9", "3"])
def test_a_boundary_that_a_side_does_not_have_is_refused(
    tmp_path: Path, whole: Path, checkpoint: Path, text: str
) -> None:
    run = train(tmp_path / "run", checkpoint, resume=True)
    with pytest.raises(RequestError) as refused:
        compared(whole, run, text)
    assert refused.value.code == "no_such_boundary"
    assert ("baseline" if text == "40" else "candidate") in refused.value.message
