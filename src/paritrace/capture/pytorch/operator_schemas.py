"""What an operator's schema says of a call: what it writes, what its results lie in, where it is told a dtype."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

WIDTHS = {torch.float16: 2, torch.bfloat16: 2, torch.float32: 4, torch.float64: 8}
_LEFT_ALONE = frozenset(
    {"c10d", "_c10d_functional", "fsdp", "profiler", "inductor"}
)  # namespaces: bytes move as they are
_OTHER = 99
_FACTORIES = frozenset({"zeros", "ones", "empty", "linspace", "logspace", "eye"})  # of the default dtype
_HALF_TO_FLOAT = frozenset({"_softmax", "_log_softmax"})


class OperatorSchema:
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
        yield from tensors_in(tuple(value for i, value in enumerate(args) if i in self._written), {})
        yield from tensors_in((), {name: value for name, value in kwargs.items() if name in self._written})

    def with_dtype(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], wide: torch.dtype
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with a narrower dtype that is asked for made wide; of a factory that is told none, too."""
        if self._base in _HALF_TO_FLOAT:
            return (*args[:2], False), kwargs
        asked = kwargs.get("dtype")
        if self._base in _FACTORIES and asked is None:
            asked = torch.get_default_dtype()
        if width_of(asked) < WIDTHS[wide]:
            return args, {**kwargs, "dtype": wide}
        at = self._dtype
        if at is not None and at < len(args) and width_of(args[at]) < WIDTHS[wide]:
            return (*args[:at], wide, *args[at + 1 :]), kwargs
        return args, kwargs


def _keys(arguments: list[Any], *, writes: bool) -> frozenset[int | str]:
    """Positions and names of arguments that results lie in; with `writes` those of them that are written."""
    known = [(i, one) for i, one in enumerate(arguments) if one.alias_info is not None]
    wanted = [(i, one.name) for i, one in known if one.alias_info.is_write or not writes]
    return frozenset(key for pair in wanted for key in pair)


def width_of(dtype: Any) -> int:
    """Bytes of a floating dtype; of anything else more than any has."""
    return WIDTHS.get(dtype, _OTHER)


def tensors_in(args: Any, kwargs: dict[str, Any]) -> Iterator[torch.Tensor]:
    for value in (*args, *kwargs.values()):
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors_in(value, {})
