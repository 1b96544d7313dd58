"""The parts of torch that have no public name, typed, in one place: what to look at when torch changes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import torch
from torch.utils import _python_dispatch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.hooks import unserializable_hook


class AutogradNode(Protocol):
    """A node of the backward graph."""

    def name(self) -> str: ...
    def _sequence_nr(self) -> int: ...


_torch_c: Mapping[str, Any] = vars(torch._C)
_without_function_modes: Callable[[], Any] = _torch_c["DisableTorchFunction"]
_tracing_state: Callable[[], object] = _torch_c["_get_tracing_state"]
_set_tracing_state: Callable[[object], None] = _torch_c["_set_tracing_state"]

storage_id: Callable[[torch.Tensor], int] = _torch_c["_storage_id"]
"""Address of the tensor's `StorageImpl`."""

current_node: Callable[[], Any] = _torch_c["_current_autograd_node"]
"""The backward node being executed on this thread, or None."""

sequence_number: Callable[[], int] = vars(torch.autograd)["_get_sequence_nr"]
"""The number that this thread's next autograd node will have."""

is_functorch_wrapped: Callable[[torch.Tensor], bool] = vars(torch._C._functorch)["is_functorch_wrapped_tensor"]

without_torch_function: Callable[[], Any] = _torch_c["DisableTorchFunctionSubclass"]
"""A context in which tensor subclasses do not intercept attribute access."""

no_python_dispatch: object = _torch_c["_disabled_torch_dispatch_impl"]
"""`__torch_dispatch__` of every class that does not wrap other tensors."""

without_dispatch_modes: Callable[[], Any] = vars(_python_dispatch)["_disable_current_modes"]
"""A context in which no mode, of the workload or of ours, sees an operator."""

dispatch_mode_stack: Callable[[], list[TorchDispatchMode]] = vars(_python_dispatch)["_get_current_dispatch_mode_stack"]

_push_mode: Callable[[object], None] = vars(_python_dispatch)["_push_mode"]
_pop_mode: Callable[[], object] = vars(_python_dispatch)["_pop_mode"]


_dispatch_mode: Callable[[Any], object] = _torch_c["_get_dispatch_mode"]
_FAKE: Any = _torch_c["_TorchDispatchModeKey"].FAKE


class without_function_modes:  # noqa: N801  used as a function, as torch's own are
    """A context in which nothing of the workload sees what we ask of a tensor: no subclass, no function mode, and no
    `torch.jit.trace`, whose graph would hold our operators."""

    __slots__ = ("_inner", "_tracing")

    def __enter__(self) -> None:
        self._tracing = _tracing_state()
        if self._tracing is not None:
            _set_tracing_state(None)
        self._inner = _without_function_modes()
        self._inner.__enter__()

    def __exit__(self, *raised: object) -> None:
        self._inner.__exit__(*raised)
        if self._tracing is not None:
            _set_tracing_state(self._tracing)


def fake_mode_active() -> bool:
    """Whether operators make fake tensors on this thread."""
    return _dispatch_mode(_FAKE) is not None


def generator_address(generator: torch.Generator) -> int:
    """Address of the generator itself, which several Python objects may stand for."""
    known: Any = generator
    address: int = known._cdata
    return address


def is_compiled(module: torch.nn.Module) -> bool:
    """Whether `torch.compile(module)` made this module; the compiler is not imported for asking."""
    compiler = sys.modules.get("torch._dynamo.eval_frame")
    return compiler is not None and isinstance(module, vars(compiler)["OptimizedModule"])


def switch_compiler_off() -> None:
    """Make `torch.compile` run eager from now on (`--eager`)."""
    os.environ["TORCHDYNAMO_DISABLE"] = "1"
    configuration = sys.modules.get("torch._dynamo.config")
    if configuration is not None:
        vars(configuration)["disable"] = True


def weak_storage(tensor: torch.Tensor) -> int:
    """A weak reference to the tensor's storage: its address stays taken, its data does not stay alive."""
    storage: Any = tensor.untyped_storage()
    reference: int = storage._weak_ref()
    return reference


def free_weak_storage(reference: int) -> None:
    """Give a weak reference back."""
    storage: Any = torch.UntypedStorage
    storage._free_weak_ref(reference)


def storage_behind(reference: int) -> Any:
    """The storage of a weak reference; None where its data is gone."""
    storage: Any = torch.UntypedStorage
    return storage._new_with_weak_ptr(reference)


def watch_gradient(tensor: torch.Tensor, hook: Callable[[torch.Tensor], None]) -> None:
    """Call `hook` with the gradient of a tensor that is not a leaf; saving the tensor does not warn of the hook."""
    watched: Any = tensor
    watched.register_hook(unserializable_hook(hook))


def deterministic_fill() -> Any:
    """Torch's module of settings with `fill_uninitialized_memory`."""
    return torch.utils.deterministic


def enter_below(mode: TorchDispatchMode) -> None:
    """Put a mode under those that the workload has entered: each of theirs leaves by popping the top of the stack."""
    theirs = [_pop_mode() for entered in dispatch_mode_stack() if not entered.is_infra_mode()]
    _push_mode(mode)
    for entered in reversed(theirs):
        _push_mode(entered)


def leave_innermost() -> None:
    """Leave a mode that `enter_below` put there and that is the innermost by now."""
    _pop_mode()
