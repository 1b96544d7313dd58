"""Runs a workload in a wider precision without a change to it: `paritrace run --upcast` (CP-10b).

What is lifted: parameters and buffers of modules, before their first forward or before DDP makes buckets of them;
inside a module's forward every floating argument and every dtype that an operator asks for; elsewhere (loss, backward,
optimizer) the arguments beside one that is lifted. What an operator writes in place keeps its dtype: it is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import torch
from torch.nn.modules import module as module_hooks
from torch.nn.parallel import DistributedDataParallel
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode

from paritrace.capture.pytorch.internals import fake_mode_active, no_python_dispatch, without_function_modes
from paritrace.capture.pytorch.numbers import run_operator
from paritrace.capture.pytorch.wrappers import sharding_of
from paritrace.errors import RequestError
from paritrace.runs.envelope import NOT_LIFTED, REFUSED, UPCAST

DTYPES = {"float32": torch.float32, "float64": torch.float64}
_WIDTHS = {torch.float16: 2, torch.bfloat16: 2, torch.float32: 4, torch.float64: 8}
_LEFT_ALONE = frozenset(
    {"c10d", "_c10d_functional", "fsdp", "profiler", "inductor"}
)  # namespaces: bytes move as they are
_OTHER = 99
_FACTORIES = frozenset({"zeros", "ones", "empty", "linspace", "logspace", "eye"})  # of the default dtype
_HALF_TO_FLOAT = frozenset({"_softmax", "_log_softmax"})
MOST_TOLD = 5  # operators in the run's own record; the number is of all


class Upcasting(TorchDispatchMode):
    """The dispatch mode that lifts, with the hooks that lift modules before they are used."""

    supports_higher_order_operators = True

    def __init__(self, dtype: str) -> None:
        super().__init__()
        self._dtype = DTYPES[dtype]
        self._name = dtype
        self._depth = 0
        self._lifted = False
        self._plans: dict[Any, _Plan] = {}
        self._not_lifted: Counter[str] = Counter()
        self._sharding = ""
        self._handles: list[Any] = []

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Compiled regions stay compiled: of them parameters, buffers and inputs are lifted, and nothing inside."""
        return True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def install(self) -> None:
        """Lift from now on, on this thread."""
        self._handles = [
            module_hooks.register_module_forward_pre_hook(self._enters),
            module_hooks.register_module_forward_hook(self._left, always_call=True),
            module_hooks.register_module_module_registration_hook(self._registered),
            register_optimizer_step_pre_hook(self._steps),
        ]
        self.__enter__()

    def facts(self) -> dict[str, str]:
        """For the session's metadata: the precision, and what could not be lifted, by operator."""
        told = {UPCAST: self._name}
        if self._sharding:
            told[NOT_LIFTED] = f"{REFUSED} {self._sharding}"
        elif self._not_lifted:
            names = ", ".join(f"{name} {number}" for name, number in self._not_lifted.most_common(MOST_TOLD))
            told[NOT_LIFTED] = f"{self._not_lifted.total()} results: {names}"
        return told

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run one operator, its floating arguments and its dtype wider where something of it is."""
        kwargs = kwargs or {}
        if fake_mode_active():  # shapes are asked for, as when a DTensor is laid out: nothing is computed
            return func(*args, **kwargs)
        if any(kind.__torch_dispatch__ is not no_python_dispatch for kind in types):
            return NotImplemented  # a wrapper of tensors: what is inside comes here again
        plan = self._plans.get(func) or self._plan(func)
        if not plan.free or not self._lifted:
            return run_operator(func, args, kwargs)
        if self._depth == 0 and not any(map(self._is_wide, _tensors(args, kwargs))):
            return run_operator(func, args, kwargs)
        narrow = next((one for one in plan.written_of(args, kwargs) if self._is_narrow(one)), None)
        if narrow is not None:  # its dtype cannot change, and many operators want the others to have the same
            self._not_lifted[plan.name] += 1
        target = self._dtype if narrow is None else narrow.dtype
        changed = tuple(value if i in plan.aliased else self._cast(value, target) for i, value in enumerate(args))
        named = {name: value if name in plan.aliased else self._cast(value, target) for name, value in kwargs.items()}
        if narrow is not None or plan.seeded:  # what is drawn stays what would have been drawn
            return run_operator(func, changed, named)
        return run_operator(func, *plan.with_dtype(changed, named, self._dtype))

    def _plan(self, func: Any) -> _Plan:
        made = self._plans[func] = _Plan(func)
        return made

    def _cast(self, value: Any, target: torch.dtype) -> Any:
        if isinstance(value, torch.Tensor):
            known = self._is_narrow(value) or self._is_wide(value)
            return value.to(target) if known and value.dtype is not target else value
        if isinstance(value, list):
            return [self._cast(one, target) for one in value]
        return value

    def _is_wide(self, tensor: torch.Tensor) -> bool:
        return tensor.dtype is self._dtype

    def _is_narrow(self, tensor: torch.Tensor) -> bool:
        return _width(tensor.dtype) < _WIDTHS[self._dtype]

    # --- modules and optimizers --------------------------------------------------------------------------------------

    def _enters(self, module: torch.nn.Module, _: Any) -> None:
        if self._depth == 0:
            self.lift_module(module)
        self._depth += 1

    def _left(self, *_: Any) -> None:
        self._depth = max(self._depth - 1, 0)

    def _registered(self, parent: torch.nn.Module, _: str, child: Any) -> None:
        """DDP makes buckets of its module's parameters as they are then."""
        if isinstance(parent, DistributedDataParallel) and isinstance(child, torch.nn.Module):
            self.lift_module(child)

    def _steps(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        """State that was made or loaded before the parameters were lifted; counters of steps stay as they are."""
        if not self._lifted:
            return
        for state in optimizer.state.values():
            for tensor in state.values():
                if isinstance(tensor, torch.Tensor) and tensor.dim():
                    self._widen(tensor)

    def lift_module(self, module: torch.nn.Module) -> None:
        """Widen its parameters and buffers; from then on operators beside them work wider.

        Raises:
            RequestError: Refused, `not_lifted`: something keeps shards of its parameters by itself, of the dtype that
                they had when it made them, and buffers for gathering them. A half of a run wider would be no answer.
        """
        self._sharding = self._sharding or sharding_of(module)
        if self._sharding:
            raise RequestError(
                f"--upcast {self._name} cannot lift parameters that {self._sharding} has cut into shards",
                code="not_lifted",
                fix="run it on one rank or under DistributedDataParallel, which can be lifted, or make the model in "
                "that dtype by itself",
            )
        for tensor in (*module.parameters(), *module.buffers()):
            self._widen(tensor)
        self._lifted = True

    def _widen(self, tensor: torch.Tensor) -> None:
        """Give a tensor wider contents under its own identity, so that optimizers and ties still hold it."""
        if not self._is_narrow(tensor):
            return
        try:
            with torch.no_grad(), without_function_modes():
                tensor.data = tensor.data.to(self._dtype)
                if tensor.grad is not None:
                    tensor.grad.data = tensor.grad.data.to(self._dtype)
        except (RuntimeError, TypeError, NotImplementedError):  # a kind of tensor that cannot change under its identity
            self._not_lifted[f"state {type(tensor).__name__}"] += 1


class _Plan:
    """What an operator's schema says of it: what its results lie in, what it writes, where it is told a dtype."""

    def __init__(self, func: Any) -> None:
        schema: Any = vars(func).get("_schema")
        self.free = schema is not None  # else a higher-order operator: what is inside comes here by itself
        self.name = str(func) if schema is None else str(schema.name)
        namespace, _, self._base = self.name.partition("::")
        arguments: list[Any] = [] if schema is None else list(schema.arguments)
        overload = "" if schema is None else str(schema.overload_name)
        reinterprets = self._base == "view" and overload == "dtype"
        self.free &= namespace not in _LEFT_ALONE and not self._base.startswith("_fused_") and not reinterprets
        self.seeded = torch.Tag.nondeterministic_seeded in func.tags if self.free else False
        self.aliased = _keys(arguments, writes=False)
        self._written = _keys(arguments, writes=True)
        self._dtype = next((i for i, one in enumerate(arguments) if one.name == "dtype" and not one.kwarg_only), None)

    def written_of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[torch.Tensor]:
        """The tensors that it writes."""
        if not self._written:
            return
        yield from _tensors(tuple(value for i, value in enumerate(args) if i in self._written), {})
        yield from _tensors((), {name: value for name, value in kwargs.items() if name in self._written})

    def with_dtype(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], wide: torch.dtype
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with a narrower dtype that is asked for made wide; of a factory that is told none, too."""
        if self._base in _HALF_TO_FLOAT:
            return (*args[:2], False), kwargs
        asked = kwargs.get("dtype")
        if self._base in _FACTORIES and asked is None:
            asked = torch.get_default_dtype()
        if _width(asked) < _WIDTHS[wide]:
            return args, {**kwargs, "dtype": wide}
        at = self._dtype
        if at is not None and at < len(args) and _width(args[at]) < _WIDTHS[wide]:
            return (*args[:at], wide, *args[at + 1 :]), kwargs
        return args, kwargs


def _keys(arguments: list[Any], *, writes: bool) -> frozenset[int | str]:
    """Positions and names of arguments that results lie in; with `writes` those of them that are written."""
    known = [(i, one) for i, one in enumerate(arguments) if one.alias_info is not None]
    wanted = [(i, one.name) for i, one in known if one.alias_info.is_write or not writes]
    return frozenset(key for pair in wanted for key in pair)


def _width(dtype: Any) -> int:
    """Bytes of a floating dtype; of anything else more than any has."""
    return _WIDTHS.get(dtype, _OTHER)


def _tensors(args: Any, kwargs: dict[str, Any]) -> Iterator[torch.Tensor]:
    for value in (*args, *kwargs.values()):
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value, {})
