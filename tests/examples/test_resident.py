"""The resident examples by themselves: a fit that gets better, a training that looking at does not move."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from examples.resident import Fit, Workload
from paritrace.session.workload import InputSet, Inspected, Refusal
from tests.examples.inline import Inline

pytestmark = pytest.mark.slow


@contextmanager
def training(folder: Path) -> Generator[tuple[Workload, Inline]]:
    folder.mkdir()
    workload = Workload()
    context = Inline(workload, folder)
    workload.load(context)
    workload.build(context)
    try:
        yield workload, context
    finally:
        workload.close(context)


def losses(folder: Path, *, look_at: int | None) -> list[object]:
    with training(folder) as (workload, context):
        found: list[object] = []
        for step in range(4):
            if step == look_at:
                assert workload.preview(context, folder, {"length": 8})() == ("sample.txt",)
            found.append(workload.step(context, step))
        return [*found, workload.state_digest(context)]


def test_se32_a_preview_changes_nothing(tmp_path: Path) -> None:
    assert losses(tmp_path / "bare", look_at=None) == losses(tmp_path / "looked", look_at=2)
    assert (tmp_path / "looked" / "sample.txt").read_bytes().startswith(b"The sea ")


def test_se8_after_a_load_the_same_steps_give_the_same_bits(tmp_path: Path) -> None:
    with training(tmp_path / "a") as (workload, context):
        for step in range(2):
            workload.step(context, step)
        assert workload.save(context, tmp_path) == ("state.pt", "random-0.pt", "settings.json")
        straight = [workload.step(context, step) for step in (2, 3)]
        digest = workload.state_digest(context)
        inspected = workload.inspect(context, tmp_path)
        assert isinstance(inspected, Inspected)
        assert workload.state_digest(context) == digest
        assert workload.apply(context, inspected) == inspected.step == 2
        assert [workload.step(context, step) for step in (2, 3)] == straight
        assert workload.state_digest(context) == digest


def test_f09_weights_that_are_missing_or_of_another_shape_are_all_named(tmp_path: Path) -> None:
    with training(tmp_path / "a") as (workload, context):
        workload.save(context, tmp_path)
        state = torch.load(tmp_path / "state.pt", weights_only=True)
        del state["model"]["blocks.1.up.weight"]
        state["model"]["head.bias"] = torch.zeros(3)
        torch.save(state, tmp_path / "state.pt")
        before = workload.state_digest(context)
        found = workload.inspect(context, tmp_path)
        assert isinstance(found, Refusal)
        assert found.reasons == (
            "model.blocks.1.up.weight: missing",
            "model.head.bias: (3,) float32 where (256,) float32 belongs",
        )
        assert workload.state_digest(context) == before
        (tmp_path / "state.pt").write_bytes(b"no checkpoint")
        (tmp_path / "random-0.pt").unlink()
        assert isinstance(workload.inspect(context, tmp_path), Refusal)


def test_se9_inputs_are_other_only_once_they_are_published(tmp_path: Path) -> None:
    with training(tmp_path / "a") as (workload, context):
        prepared = workload.prepare_inputs(context, {"text": "stars"})
        assert isinstance(prepared, InputSet)
        workload.install_inputs(context, prepared)
        before = workload.step(context, 0)
    with training(tmp_path / "b") as (workload, context):
        assert workload.step(context, 0) == before
        workload.install_inputs(context, prepared)
        workload.publish_inputs(context, prepared)
        assert workload.step(context, 1)["loss"] != before["loss"]
        assert isinstance(workload.prepare_inputs(context, {"text": "no such"}), Refusal)


def test_se10_the_fit_comes_nearer_and_shows_both_pictures(tmp_path: Path) -> None:
    fit = Fit()
    context = Inline(fit, tmp_path, discs=24)
    fit.load(context)
    fit.build(context)
    errors = [float(fit.step(context, step)["error"]) for step in range(60)]
    assert errors[-1] < errors[0] / 2
    assert fit.preview(context, tmp_path, {})() == ("picture.pgm",)
    assert (tmp_path / "picture.pgm").read_bytes().startswith(b"P5 128 64 255\n")
