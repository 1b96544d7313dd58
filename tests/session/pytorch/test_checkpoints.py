"""Saving, inspecting and applying the state of a torch workload (SE-8, F-09, F-15)."""

import random
import resource
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from paritrace.session.checkpoint_records import Origin, Receipt
from paritrace.session.checkpoints import publish, seal
from paritrace.session.pytorch import checkpoints
from paritrace.session.pytorch.digests import digest_of_state
from paritrace.session.pytorch.parts import Parts
from paritrace.session.rank.context import Identity, RankContext
from paritrace.session.workload import Inspected, Refusal, Unchanged


def _context(folder: Path, *, rank: int = 0, world_size: int = 2) -> RankContext:
    identity = Identity(rank=rank, world_size=world_size, local_rank=rank, generation=1, store="", scratch=folder)
    return RankContext(identity, config={}, config_revision=0, moved=lambda: None)


def _parts(width: int = 4, *, dtype: torch.dtype = torch.float32, groups: int = 1, layers: int = 2) -> Parts:
    torch.manual_seed(3)
    model = nn.Sequential(*(nn.Linear(width, width, dtype=dtype) for _ in range(layers)))
    parameters = list(model.parameters())
    split = [{"params": parameters[index::groups]} for index in range(groups)]
    optimizer = torch.optim.AdamW(split, lr=1e-2)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
    return Parts(model=model, optimizer=optimizer, more={"scheduler": scheduler})


def _step(parts: Parts) -> None:
    weight = next(parts.model.parameters())
    loss = parts.model(torch.randn(3, weight.shape[1], dtype=weight.dtype)).square().sum()
    loss.backward()
    assert parts.optimizer is not None
    parts.optimizer.step()
    parts.optimizer.zero_grad()


def _digest(parts: Parts) -> str:
    assert parts.optimizer is not None
    return digest_of_state({"model": parts.model.state_dict(), "optimizer": parts.optimizer.state_dict()})


@pytest.mark.parametrize("retain", [True, False])
def test_se8_a_state_comes_back_bit_by_bit_and_draws_go_on_as_they_would_have(tmp_path: Path, retain: bool) -> None:
    parts, context = _parts(), _context(tmp_path)
    _step(parts)
    names = checkpoints.save(context, parts, tmp_path, step=7)
    assert sorted(names) == sorted(path.name for path in tmp_path.iterdir())
    saved = _digest(parts)
    _step(parts)
    then, drawn = _digest(parts), random.random()
    assert then != saved
    inspected = checkpoints.inspect(context, parts, tmp_path, retain=retain)
    assert isinstance(inspected, Inspected)
    assert _digest(parts) == then
    assert (inspected.retained_bytes > 0) is retain
    assert checkpoints.apply(parts, inspected) == 7
    assert _digest(parts) == saved
    _step(parts)
    assert (_digest(parts), random.random()) == (then, drawn)


def test_f15_each_rank_keeps_its_own_streams_and_the_first_alone_the_state(tmp_path: Path) -> None:
    parts = _parts()
    first = checkpoints.save(_context(tmp_path, rank=0), parts, tmp_path, step=0)
    second = checkpoints.save(_context(tmp_path, rank=1), parts, tmp_path, step=0)
    assert first == ("state.pt", "random-0.pt")
    assert second == ("random-1.pt",)


def test_se8_another_number_of_ranks_loads_a_whole_state_and_keeps_the_streams_that_nobody_saved(
    tmp_path: Path,
) -> None:
    parts, staging = _parts(), tmp_path / ".x"
    staging.mkdir()
    origin = Origin("s", "package:Class", 2, 1, 1, 0, 7)
    for rank in (0, 1):
        names = checkpoints.save(_context(tmp_path, rank=rank), parts, staging, step=7)
        seal(staging, names, Receipt(rank, origin, 1))
    made = publish(staging, tmp_path / "x")
    assert made.manifest.sharded is False
    _step(parts)
    third = checkpoints.inspect(_context(tmp_path, rank=2, world_size=3), parts, made.folder)
    assert isinstance(third, Inspected)
    assert third.notes == ("no random streams were saved for this rank: its own go on",)
    before = torch.get_rng_state()
    assert checkpoints.apply(parts, third) == 7
    assert torch.equal(before, torch.get_rng_state())
    (made.folder / "random-0.pt").unlink()
    damaged = checkpoints.inspect(_context(tmp_path, world_size=1), parts, made.folder)
    assert damaged == Refusal(("random-0.pt: not in the checkpoint",))


def test_f09_every_failing_invariant_is_a_reason_and_nothing_is_touched(tmp_path: Path) -> None:
    context, stored = _context(tmp_path), _parts(layers=3, groups=2)
    _step(stored)
    checkpoints.save(context, stored, tmp_path, step=1)
    state: dict[str, Any] = torch.load(tmp_path / "state.pt", weights_only=True)
    state["model"]["0.weight"] = state["model"]["0.weight"][:2].double()
    del state["model"]["1.bias"], state["scheduler"]
    torch.save(state, tmp_path / "state.pt")
    (tmp_path / "random-0.pt").unlink()
    resident = _parts()
    before = _digest(resident)
    refusal = checkpoints.inspect(context, resident, tmp_path)
    assert isinstance(refusal, Refusal)
    assert refusal.reasons == (
        "scheduler: no such section",
        "model.1.bias: missing",
        "model.2.bias: unknown here",
        "model.2.weight: unknown here",
        "model.0.weight: (2, 4) float64 where (4, 4) float32 belongs",
        "optimizer: 2 groups where 1 belong",
        "random-0.pt: not in the checkpoint",
    )
    assert _digest(resident) == before


def test_f09_a_moment_of_another_shape_and_a_setting_of_another_optimizer_are_reasons(tmp_path: Path) -> None:
    context, parts = _context(tmp_path), _parts()
    _step(parts)
    checkpoints.save(context, parts, tmp_path, step=1)
    state: dict[str, Any] = torch.load(tmp_path / "state.pt", weights_only=True)
    state["optimizer"]["state"][1]["exp_avg"] = torch.zeros(9)
    del state["optimizer"]["param_groups"][0]["betas"]
    torch.save(state, tmp_path / "state.pt")
    refusal = checkpoints.inspect(context, parts, tmp_path)
    assert isinstance(refusal, Refusal)
    assert refusal.reasons == (
        "optimizer.group 0.betas: missing",
        "optimizer.state 1.exp_avg: shape (9,) where (4,) belongs",
    )


def test_se8_a_file_that_cannot_be_read_or_is_of_another_kind_is_refused(tmp_path: Path) -> None:
    context, parts = _context(tmp_path), _parts()
    checkpoints.save(context, parts, tmp_path, step=1)
    whole = (tmp_path / "state.pt").read_bytes()
    (tmp_path / "state.pt").write_bytes(whole[: len(whole) // 2])
    refusal = checkpoints.inspect(context, parts, tmp_path)
    assert isinstance(refusal, Refusal)
    assert refusal.reasons[0].startswith("state.pt: cannot be read")
    torch.save({"model": {}}, tmp_path / "state.pt")
    refusal = checkpoints.inspect(context, parts, tmp_path)
    assert isinstance(refusal, Refusal)
    assert "state.pt: its format is None, not paritrace-torch-state" in refusal.reasons


def test_se7_a_file_that_changed_after_it_was_inspected_is_told_before_anything_is_touched(tmp_path: Path) -> None:
    context, parts = _context(tmp_path), _parts()
    checkpoints.save(context, parts, tmp_path, step=1)
    inspected = checkpoints.inspect(context, parts, tmp_path, retain=False)
    assert isinstance(inspected, Inspected)
    (tmp_path / "state.pt").write_bytes(b"")
    before = _digest(parts)
    with pytest.raises(Unchanged, match="cannot be read"):
        checkpoints.apply(parts, inspected)
    assert _digest(parts) == before


def test_n03_a_digest_leaves_the_storage_resizable() -> None:
    tensor = torch.zeros(8)
    digest_of_state({"tensor": tensor})
    assert tensor.untyped_storage().resizable()


def test_f08_a_digest_tells_apart_what_differs_in_one_bit_in_shape_or_in_dtype() -> None:
    one = torch.arange(4, dtype=torch.float32)
    other = one.clone()
    other.view(torch.int32)[3] += 1
    digests = [
        digest_of_state({"x": value})
        for value in (one, other, one.reshape(2, 2), one.view(torch.int32), one.t(), [1, 2], (1, 2.0), None, "1")
    ]
    assert digests[0] == digests[4]
    assert len(set(digests)) == len(digests) - 1
    with pytest.raises(TypeError, match="x is of type object"):
        digest_of_state({"x": object()})


def test_se8_a_disk_that_takes_no_more_is_told_with_the_room_there_is(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(OSError, match=r"\.pt could not be written, [\d,]+ bytes are free there: "):
            checkpoints.save(_context(tmp_path), _parts(), tmp_path, step=3)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
