"""What a call expression is said to call, without running anything of the workload's (CA-10)."""

import functools
from typing import Any

import pytest
import torch

from paritrace.capture.pytorch.callees import callee_of


class Asked(type):
    """A class of this class does not like to be asked."""

    def __getattribute__(cls, name: str) -> Any:
        raise AssertionError(name)


class Silent(metaclass=Asked):
    def __call__(self) -> None: ...


class Part(functools.partial[Any]):
    @property
    def func(self) -> Any:
        raise AssertionError("func")


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.set_materialize_grads(False)
        return x * 2


def named(function: Any) -> str:
    return callee_of(function).name


def test_what_a_metaclass_and_a_partial_say_of_themselves_is_not_asked() -> None:
    assert named(Silent) == f"{__name__}.Silent"
    silent = object.__new__(Silent)
    assert named(silent) == f"{__name__}.Silent.__call__"
    assert named(Part(torch.add)) == "torch.add"


def test_an_autograd_function_is_named_by_its_class() -> None:
    doubled: Any = Doubled
    assert named(doubled.apply) == f"{__name__}.Doubled.apply"


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (torch.nn.functional.gelu, "torch.nn.functional.gelu"),
        (torch.zeros, "torch.zeros"),
        (torch.Tensor.add, "torch.Tensor.add"),
        (torch.ops.aten.add.Tensor, "torch.ops.aten.add.Tensor"),
        (vars(type)["__call__"].__get__(Silent), "type.__call__"),  # has no module
        ((1).__add__, "int.__add__"),
        (len, "len"),
    ],
)
def test_builtins_are_named_as_their_users_know_them(function: Any, name: str) -> None:
    assert named(function) == name
