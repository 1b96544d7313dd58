"""Runs a workload in a wider precision without a change to it: `paritrace run --upcast` (CP-10b).

What is lifted: parameters and buffers of modules, before their first forward or before DDP makes buckets of them;
inside a module's forward every floating argument and every dtype that an operator asks for; elsewhere (loss, backward,
optimizer) the arguments beside one that is lifted. What an operator writes in place keeps its dtype: it is counted.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from torch.nn.modules import module as module_hooks
from torch.nn.parallel import DistributedDataParallel
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode

from paritrace.capture.pytorch.internals import fake_mode_active, no_python_dispatch, without_function_modes
from paritrace.capture.pytorch.numbers import run_operator
from paritrace.capture.pytorch.operator_schemas import WIDTHS, OperatorSchema, tensors_in, width_of
from paritrace.capture.pytorch.wrappers import sharding_of
from paritrace.errors import RequestError
from paritrace.runs.envelope import NOT_LIFTED, REFUSED, UPCAST

DTYPES = {"float32": torch.float32, "float64": torch.float64}
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
        self._schemas: dict[Any, OperatorSchema] = {}
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
        schema = self._schemas.get(func) or self._schema_of(func)
        if not schema.free or not self._lifted:
            return run_operator(func, args, kwargs)
        if self._depth == 0 and not any(map(self._is_wide, tensors_in(args, kwargs))):
            return run_operator(func, args, kwargs)
        narrow = next((one for one in schema.written_of(args, kwargs) if self._is_narrow(one)), None)
        if narrow is not None:  # its dtype cannot change, and many operators want the others to have the same
            self._not_lifted[schema.name] += 1
        target = self._dtype if narrow is None else narrow.dtype
        changed = tuple(value if i in schema.aliased else self._cast(value, target) for i, value in enumerate(args))
        named = {name: value if name in schema.aliased else self._cast(value, target) for name, value in kwargs.items()}
        if narrow is not None or schema.seeded:  # what is drawn stays what would have been drawn
            return run_operator(func, changed, named)
        return run_operator(func, *schema.with_dtype(changed, named, self._dtype))

    def _schema_of(self, func: Any) -> OperatorSchema:
        made = self._schemas[func] = OperatorSchema(func)
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
        return width_of(tensor.dtype) < WIDTHS[self._dtype]

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
