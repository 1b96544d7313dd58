"""What a call expression calls: its name in evidence, and what that name alone says it does to tensors.

Nothing of the workload runs for asking: no attribute of an object of the workload is looked up.
"""

from __future__ import annotations

import functools
import types
from typing import Any, NamedTuple

import torch

from paritrace.capture.pytorch.operators import ALLOCATES, OVERWRITES
from paritrace.capture.pytorch.wrappers import class_name

_BUILTINS = (types.BuiltinFunctionType, types.MethodWrapperType)
_DESCRIPTORS = (types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType)
_OPERATORS = (torch._ops.OpOverload, torch._ops.OpOverloadPacket)
# How torch's own names begin where the class or module that holds them is not what a user writes.
_SPELLINGS = {
    "torch._VariableFunctionsClass.": "torch.",
    "torch._tensor.Tensor.": "torch.Tensor.",
    "TensorBase.": "torch.Tensor.",
    "torch._C._nn.": "torch.nn.functional.",
}
_TYPE_NAME = vars(type)["__qualname__"].__get__  # a metaclass may answer for itself
_TYPE_MODULE = vars(type)["__module__"].__get__
_PARTIAL_FUNCTION = vars(functools.partial)["func"].__get__
_INITIALISES = "torch.nn.init."


class Callee(NamedTuple):
    """`receiver`: the tensor whose method is called. `overwrites`: it is written without being read.

    `writes`: it is written; without a receiver, the first argument is. `allocates`: the result was never written.
    """

    name: str
    receiver: torch.Tensor | None = None
    writes: bool = False
    overwrites: bool = False
    allocates: bool = False


def callee_of(function: Any) -> Callee:
    """The callee of a call that is about to be made. The result holds its receiver, and is not to be kept."""
    cls: type = type(function)
    if issubclass(cls, torch.nn.Module):
        return Callee(class_name(function))
    if issubclass(cls, functools.partial):
        return callee_of(_PARTIAL_FUNCTION(function))
    if cls is types.MethodType:
        return _method(function.__func__, function.__self__)
    if cls in _BUILTINS:
        return _builtin(function)
    if issubclass(cls, type):
        return Callee(f"{_module(function)}{_TYPE_NAME(function)}")
    if cls is types.FunctionType:
        name = _spelled(f"{_module(function)}{function.__qualname__}")
        return Callee(name, writes=name.startswith(_INITIALISES))
    if cls in _DESCRIPTORS:
        return Callee(_spelled(function.__qualname__))
    if cls in _OPERATORS:
        return Callee(f"torch.ops.{function}")
    return Callee(f"{_module(cls)}{_TYPE_NAME(cls)}.__call__")


def _method(function: Any, receiver: Any) -> Callee:
    named = callee_of(function)
    if issubclass(type(receiver), type) and issubclass(receiver, torch.autograd.Function):
        return Callee(f"{_module(receiver)}{_TYPE_NAME(receiver)}.{named.name.rpartition('.')[2]}")
    return _on_tensor(named.name, receiver) if issubclass(type(receiver), torch.Tensor) else named


def _builtin(function: types.BuiltinFunctionType | types.MethodWrapperType) -> Callee:
    receiver: Any = function.__self__
    if issubclass(type(receiver), torch.Tensor):
        return _on_tensor(f"torch.Tensor.{function.__name__}", receiver)
    if receiver is None or issubclass(type(receiver), types.ModuleType | type):
        name = f"{_module(function)}{function.__qualname__}"
        return Callee(_spelled(name), allocates=_allocates(function.__name__))
    cls = type(receiver)
    return Callee(_spelled(f"{_module(cls)}{function.__qualname__}"), allocates=_allocates(function.__name__))


def _on_tensor(name: str, receiver: torch.Tensor) -> Callee:
    short = name.rpartition(".")[2]
    writes = short.endswith("_") and not short.startswith("__")
    return Callee(name, receiver, writes, short in OVERWRITES, _allocates(short))


def _allocates(name: str) -> bool:
    return name.startswith(ALLOCATES)


def _spelled(name: str) -> str:
    """A name of torch's as its users know it."""
    for inner, outer in _SPELLINGS.items():
        if name.startswith(inner):
            return outer + name[len(inner) :]
    return name


def _module(owner: Any) -> str:
    """The module of a function or class, with a dot behind it; nothing for builtins and for what has none."""
    if type(owner) is types.MethodWrapperType:
        return ""
    module: object = _TYPE_MODULE(owner) if issubclass(type(owner), type) else owner.__module__
    return f"{module}." if issubclass(type(module), str) and module != "builtins" else ""
