"""Names and classes of modules are the author's, whatever torch wraps around them (CA-27, CP-1)."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.nn.parallel import DistributedDataParallel

import paritrace
from paritrace.capture.pytorch.names import Names
from paritrace.capture.pytorch.wrappers import class_name, original_class
from paritrace.compare.engine import compare
from paritrace.evidence.calls import Call, Name, NotCaptured, Origin, OriginKind, Scope, StateNames, StepMark
from paritrace.evidence.gaps import Gap
from paritrace.runs.reading import open_run

in_memory = vars(dist)["HashStore"]


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.module = torch.nn.Linear(3, 3)  # a name that wrappers use, too
        self.register_buffer("scale", torch.ones(3))

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.module(batch).relu() * self.scale
        return found


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first: torch.nn.Module = Block()
        self.second: torch.nn.Module = Block()

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.second(self.first(batch))
        return found


@pytest.fixture
def world() -> Iterator[None]:
    """A world of one rank, in this process."""
    dist.init_process_group("gloo", store=in_memory(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def wrapped(kind: str) -> torch.nn.Module:
    """The same model, wrapped in some way or not at all."""
    torch.manual_seed(0)
    model = Model()
    match kind:
        case "ddp":
            return DistributedDataParallel(model)
        case "checkpointed":
            model.second = checkpoint_wrapper(model.second)
        case "inner ddp":
            model.first = DistributedDataParallel(model.first)
        case "fsdp2":
            mesh = init_device_mesh("cpu", (1,))
            fully_shard(model.first, mesh=mesh)
            fully_shard(model, mesh=mesh)
        case _:
            pass
    return model


def captured(run: Path, kind: str) -> tuple[set[tuple[str, str]], dict[str, tuple[str, ...]]]:
    """Scopes (name, class) and the names of states of one forward and backward."""
    model = wrapped(kind)
    with paritrace.trace(run, level="module", diff=False):
        torch.autograd.backward(model(torch.ones(2, 3)).sum())
        torch.optim.SGD(model.parameters(), lr=0.1).step()
    with open_run(run) as opened:
        records = list(opened.records("rank-0"))
    scopes = {(record.module, record.cls.rpartition(".")[2]) for record in records if isinstance(record, Scope)}
    return scopes, {record.group: record.names for record in records if isinstance(record, StateNames)}


@pytest.mark.parametrize("kind", ["ddp", "checkpointed", "inner ddp", "fsdp2"])
def test_a_wrapped_model_has_the_names_and_classes_of_the_bare_one(world: None, tmp_path: Path, kind: str) -> None:
    scopes, names = captured(tmp_path / "bare", "bare")
    assert ("first.module", "Linear") in scopes
    assert "second.module.weight" in names["parameter"]
    found, wrapped_names = captured(tmp_path / "wrapped", kind)
    wrappers = {(name, cls) for name, cls in found if cls in ("DistributedDataParallel", "CheckpointWrapper")}
    assert found - wrappers == scopes
    assert {name for name, _ in wrappers} == {
        "ddp": {""},
        "checkpointed": {"second"},
        "inner ddp": {"first"},
        "fsdp2": set(),
    }[kind]
    for group in ("parameter", "buffer", "gradient"):
        assert wrapped_names[group] == names[group]


@pytest.mark.parametrize("kind", ["ddp", "fsdp2"])
def test_a_wrapped_and_a_bare_run_pair_without_being_told(world: None, tmp_path: Path, kind: str) -> None:
    """CP-1: every module call of the bare run has its counterpart, and nothing is different."""
    captured(tmp_path / "bare", "bare")
    captured(tmp_path / "wrapped", kind)
    with open_run(tmp_path / "bare") as bare, open_run(tmp_path / "wrapped") as other:
        counts = compare(bare, other).result.counts
    assert counts.paired > 0
    assert counts.undetermined_baseline == 0
    assert counts.different == 0


def test_gathered_parameters_have_the_names_of_their_shards(world: None, tmp_path: Path) -> None:
    """Under FSDP2 forward reads, and backward fills, tensors that no `named_parameters` shows afterwards (CA-27)."""
    model = wrapped("fsdp2")
    with paritrace.trace(tmp_path / "run", level=("module", "op"), diff=False):
        torch.autograd.backward(model(torch.ones(2, 3)).sum())
        torch.optim.SGD(model.parameters(), lr=0.1).step()
    with open_run(tmp_path / "run") as opened:
        records = list(opened.records("rank-0"))
    texts = {record.id: record.text for record in records if isinstance(record, Name)}
    accumulated = {text.partition(":")[2] for text in texts.values() if text.startswith("AccumulateGrad:")}
    assert accumulated == {f"{block}.module.{name}" for block in ("first", "second") for name in ("weight", "bias")}


def test_a_module_names_its_parameters_where_nothing_else_does(world: None, tmp_path: Path) -> None:
    captured(tmp_path / "run", "fsdp2")
    with open_run(tmp_path / "run") as opened:
        records = list(opened.records("rank-0"))
    origins = {record.id: (record.kind, record.name) for record in records if isinstance(record, Origin)}
    names = {record.id: record.text for record in records if isinstance(record, Name)}
    sources = {
        origins[slot.source]
        for call in records
        if isinstance(call, Call)
        for slot in call.inputs
        if names[slot.name] in ("weight", "scale") and isinstance(slot.source, int)
    }
    assert sources == {
        (kind, f"{block}.{name}")
        for block in ("first", "second")
        for kind, name in ((OriginKind.PARAMETER, "module.weight"), (OriginKind.BUFFER, "scale"))
    }


@pytest.mark.parametrize("original", [True, False])
def test_flat_shards_of_the_first_fsdp_do_not_pass_for_whole_tensors(
    world: None, tmp_path: Path, original: bool
) -> None:
    """They are plain tensors without a placement: the norm of their gradients is in parts, and that is said (CA-29)."""
    model = FullyShardedDataParallel(wrapped("bare"), device_id=torch.device("cpu"), use_orig_params=original)
    with paritrace.trace(tmp_path / "run", level="module", diff=False):
        torch.autograd.backward(model(torch.ones(2, 3)).sum())
        torch.optim.SGD(model.parameters(), lr=0.1).step()
    with open_run(tmp_path / "run") as opened:
        records = list(opened.records("rank-0"))
    scopes = {(record.module, record.cls.rpartition(".")[2]) for record in records if isinstance(record, Scope)}
    assert {("", "FullyShardedDataParallel"), ("", "Model"), ("first.module", "Linear")} <= scopes
    (mark,) = [record for record in records if isinstance(record, StepMark)]
    assert isinstance(mark.grad_norm, Gap)
    assert "without parts on other ranks" in str(mark.grad_norm.detail)
    (said,) = [record for record in records if isinstance(record, NotCaptured)]
    assert "placements_of_flat_shards" in said.names


def test_a_second_root_is_called_by_the_class_inside_of_its_wrapper(world: None) -> None:
    names = Names()
    names.register_root(torch.nn.Linear(1, 1))
    assert names.register_root(DistributedDataParallel(Model())) == "Model"


def test_classes_of_the_models_own_are_left_alone() -> None:
    class Special(Block, torch.nn.Module):
        """Two bases, but not torch's doing."""

    assert original_class(Special()) is Special
    assert class_name(torch.nn.Linear(1, 1)) == "torch.nn.modules.linear.Linear"
