"""Which parameters DistributedDataParallel keeps alike, and which it was told to ignore (CP-25)."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import paritrace
from paritrace.evidence.distributed import Group, Replicated
from paritrace.runs.reading import open_run

in_memory = vars(dist)["HashStore"]


@pytest.fixture
def world() -> Iterator[None]:
    """A world of one rank, in this process."""
    dist.init_process_group("gloo", store=in_memory(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


class Inner(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.used, self.ignored, self.frozen = (torch.nn.Linear(2, 2, bias=False) for _ in range(3))
        self.frozen.weight.requires_grad_(False)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.used(batch) + self.ignored(batch) + self.frozen(batch)
        return found


class Outer(torch.nn.Module):
    def __init__(self, inner: torch.nn.Module) -> None:
        super().__init__()
        self.inner = inner
        self.head = torch.nn.Linear(2, 1)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.head(self.inner(batch))
        return found


def marks(run: Path, model: torch.nn.Module) -> tuple[list[Replicated], dict[int, str]]:
    with paritrace.trace(run, level="digest", diff=False):
        for _ in range(3):
            torch.autograd.backward(model(torch.ones(2, 2)).sum())
            torch.optim.SGD(model.parameters(), lr=0.1).step()
    with open_run(run) as opened:
        records = list(opened.records("rank-0"))
    groups = {record.id: record.key for record in records if isinstance(record, Group)}
    return [record for record in records if isinstance(record, Replicated)], groups


def wrapped(**options: object) -> DistributedDataParallel:
    model = Inner()
    DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(model, ["ignored.weight"])  # type: ignore[no-untyped-call]
    return DistributedDataParallel(model, **options)  # type: ignore[arg-type]


def test_a_wrapped_root_says_once_what_it_keeps_alike_and_what_it_leaves_out(world: None, tmp_path: Path) -> None:
    found, groups = marks(tmp_path / "run", wrapped())
    assert found == [Replicated(0, ("used.weight", "frozen.weight"), "ddp", ("ignored.weight",))]
    assert groups == {0: "world"}


def test_a_wrapper_inside_of_a_model_speaks_of_its_own_parameters_and_group(world: None, tmp_path: Path) -> None:
    group = dist.new_group([0])
    found, groups = marks(tmp_path / "run", Outer(wrapped(process_group=group)))
    (mark,) = found
    assert (mark.names, mark.left_out) == (("inner.used.weight", "inner.frozen.weight"), ("inner.ignored.weight",))
    assert groups[mark.group] == "ranks 0"


def test_what_is_reduced_later_is_kept_alike(world: None, tmp_path: Path) -> None:
    model = Inner()
    wrapper = DistributedDataParallel(
        model,
        delay_all_reduce_named_params=[("ignored.weight", model.ignored.weight)],
        param_to_hook_all_reduce=model.used.weight,
    )
    found, _ = marks(tmp_path / "run", wrapper)
    assert [(mark.names, mark.left_out) for mark in found] == [(("used.weight", "ignored.weight", "frozen.weight"), ())]


def test_a_model_that_is_not_wrapped_has_no_mark(world: None, tmp_path: Path) -> None:
    assert marks(tmp_path / "run", Inner())[0] == []
