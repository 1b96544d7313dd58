"""Schedulers, scalers, samplers, foreign generators and scales join the inventory, and are only read (CA-29)."""

import gc
import sys
import weakref
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, DistributedSampler, RandomSampler, TensorDataset

from paritrace.capture.pytorch.foreign_state import MEGATRON, TRACKER, fp8_scales, megatron_generators
from paritrace.capture.pytorch.plain_values import attributes, plain
from paritrace.capture.pytorch.training_state import TrainingState
from paritrace.evidence.gaps import Gap


def state_of(training: TrainingState, step: int, *, of: str) -> dict[str, Any]:
    """The values whose names begin so: other tests may have left objects alive."""
    return {name: value for _, rows in training.groups(step) for name, value in rows if name.rpartition(".")[0] == of}


@pytest.mark.filterwarnings("ignore:Detected call of")
def test_a_scheduler_is_read_in_clear_and_followed() -> None:
    class Own(lr_scheduler.LRScheduler):
        def __init__(self, optimizer: torch.optim.Optimizer) -> None:
            self.hook = lambda: None
            super().__init__(optimizer)

        def get_lr(self) -> list[float | torch.Tensor]:
            return [0.5 / (self.last_epoch + 1)]

        def state_dict(self) -> dict[str, Any]:
            raise AssertionError("it is never asked for: it may have effects")

    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.5)
    scheduler = Own(optimizer)
    training = TrainingState()
    first = state_of(training, 0, of="Own")
    assert (first["Own.last_epoch"], first["Own.last_lr"], first["Own.base_lrs"]) == ("0", "[0.5]", "[0.5]")
    assert "scheduler:Own.hook" in training.not_captured(), "what has no plain form is named"
    optimizer.zero_grad()
    scheduler.step()
    assert state_of(training, 1, of="Own")["Own.last_lr"] == "[0.25]"


def test_a_scaler_is_read_without_making_its_scale() -> None:
    class Scaler(torch.amp.GradScaler):
        pass

    scaler = Scaler("cpu", init_scale=8.0)
    training = TrainingState()
    assert state_of(training, 0, of="Scaler")["Scaler.scale"] == "None"
    assert vars(scaler)["_scale"] is None, "it is made by its first use, not by us"
    scaler.scale(torch.ones(1))
    found = state_of(training, 1, of="Scaler")
    assert (found["Scaler.scale"], found["Scaler.growth_tracker"]) == ("8.0", "0")
    assert not [name for name in found if "per_optimizer" in name], "it is keyed by addresses"


def test_samplers_and_the_place_in_the_data() -> None:
    class Distributed(DistributedSampler[Any]):
        pass

    class Random(RandomSampler):
        pass

    data = TensorDataset(torch.arange(12.0))
    sampler = Distributed(data, num_replicas=2, rank=1, seed=7)
    generator = torch.Generator().manual_seed(3)
    drawn = Random(data, generator=generator)
    before = generator.get_state()
    loader = DataLoader(data, batch_size=2, sampler=sampler)
    training = TrainingState()
    place = iter(loader)
    next(place)
    found = state_of(training, 0, of="Distributed")
    assert (found["Distributed.epoch"], found["Distributed.seed"], found["Distributed.rank"]) == ("0", "7", "1")
    sampler.set_epoch(4)
    assert state_of(training, 1, of="Distributed")["Distributed.epoch"] == "4"
    assert len(state_of(training, 1, of="Random")["Random.generator"]) == 16
    assert torch.equal(generator.get_state(), before)
    positions = [rows for group, rows in training.groups(1) if group == "data_position"]
    assert "1" in dict(positions[0]).values()
    assert drawn is not None


def test_the_next_epochs_iterator_is_found_when_the_last_one_has_gone() -> None:
    loader = DataLoader(TensorDataset(torch.arange(8.0)), batch_size=2)
    training = TrainingState()

    def positions(step: int) -> list[str]:
        return [str(value) for group, rows in training.groups(step) if group == "data_position" for _, value in rows]

    gc.collect()
    place = iter(loader)
    assert len([next(place) for _ in range(3)]) == 3
    assert "3" in positions(4)
    del place
    gc.collect()
    place = iter(loader)
    assert len([next(place) for _ in range(2)]) == 2
    assert "2" in positions(5), "a look is due at steps 0, 1, 4, 16 …, and when something has gone"


def test_nothing_is_kept_alive() -> None:
    scheduler = lr_scheduler.StepLR(torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1), 1)
    training = TrainingState()
    list(training.groups(0))
    gone = weakref.ref(scheduler)
    del scheduler
    gc.collect()
    assert gone() is None


def test_what_was_looked_for_and_not_found_is_not_what_could_not_be_read() -> None:
    gc.collect()
    found = TrainingState()
    groups = [group for group, _ in found.groups(0)]
    assert ("scheduler (none found)" in found.not_captured()) == ("scheduler" not in groups)
    assert ("grad_scaler (none found)" in found.not_captured()) == ("scaler" not in groups)


class Trap:
    """Every way to ask it something is a mistake."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(name)

    def __repr__(self) -> str:
        raise AssertionError


class Listed(list[int]):
    def __iter__(self) -> Iterator[int]:
        raise AssertionError

    def __repr__(self) -> str:
        raise AssertionError


def test_values_are_read_by_the_built_in_types_alone() -> None:
    assert plain(Trap()) is None
    assert plain([1, Trap()]) is None
    assert plain(Listed([1, 2])) == "[1, 2]"
    assert plain({"b": (1, 2.5), "a": None, 3: "x"}) == "{'a': None, 'b': [1, 2.5], 3: 'x'}"
    assert plain([torch.tensor(0.5), torch.tensor(3)]) == "[0.5, 3]"
    assert len(str(plain(list(range(100))))) == 16, "a long one by its digest"
    assert plain(list(range(100))) != plain(list(range(1, 101)))
    assert plain(list(range(200_000))) is None
    assert plain([[[[[1]]]]]) is None
    assert isinstance(plain(torch.ones(2, device="meta")), Gap)
    assert list(attributes(Trap())) == []


def test_megatrons_tracker_is_read_where_it_is_loaded_and_never_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in with the attributes of Megatron-Core; the library itself is not a dependency."""
    assert list(megatron_generators()) == []
    module = ModuleType(MEGATRON)
    module.get_cuda_rng_tracker = lambda: pytest.fail("it makes what is not there")  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, MEGATRON, module)
    assert list(megatron_generators()) == []

    class Tracker:
        def __init__(self) -> None:
            self.states_ = {"model-parallel-rng": torch.arange(5, dtype=torch.uint8), "odd": object()}

        def get_states(self) -> None:
            pytest.fail("its attributes are enough")

    setattr(module, TRACKER, Tracker())
    ((name, value),) = megatron_generators()
    assert name == "megatron:model-parallel-rng"
    assert isinstance(value, str)


def test_fp8_scales_are_read_where_transformer_engine_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in with the attributes of its modules."""

    class Recipe:
        def __init__(self) -> None:
            self.scale = torch.tensor([2.0, 4.0])
            self.amax_history = torch.zeros(3, 2)
            self.recipe = object()

    layer = torch.nn.Linear(2, 2)
    recipe = Recipe()
    vars(layer)["fp8_meta"] = {"scaling_fwd": recipe, "recipe": object(), "fp8_checkpoint": False}
    modules = [("net", torch.nn.ReLU()), ("net.fc", layer)]
    assert list(fp8_scales(modules)) == []
    monkeypatch.setitem(sys.modules, "transformer_engine", ModuleType("transformer_engine"))
    assert [name for name, _ in fp8_scales(modules)] == [
        "net.fc.scaling_fwd.amax_history",
        "net.fc.scaling_fwd.scale",
    ]
    before = dict(fp8_scales(modules))
    recipe.scale[1] = 8.0
    changed = {name for name, value in fp8_scales(modules) if value != before[name]}
    assert changed == {"net.fc.scaling_fwd.scale"}
