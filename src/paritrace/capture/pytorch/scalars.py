"""The non-tensor arguments of a call, as interned short texts."""

from __future__ import annotations

from typing import Any

import torch

from paritrace.capture.definitions import Definitions

MAX_TEXT = 120  # longer texts are cut: a scalar that matters is short
_ATOMS = (int, float, bool, complex, str, torch.dtype, torch.layout, torch.memory_format)
_NOTHING = 0


class ScalarTexts:
    """Turns arguments into the id of a `Scalars` definition; seen combinations cost one dictionary look-up."""

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._known: dict[tuple[object, ...], int] = {}
        self._none = definitions.scalars({})

    def of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
        key: list[object] = []
        for index, value in enumerate(args):
            if value is not None and not isinstance(value, torch.Tensor):
                _add(key, index, value)
        for name, value in kwargs.items():
            if value is not None and not isinstance(value, torch.Tensor):
                _add(key, name, value)
        if not key:
            return self._none
        found = tuple(key)
        known = self._known.get(found)
        if known is None:
            known = self._known[found] = self._definitions.scalars(_texts(found))
        return known


def _add(key: list[object], name: object, value: Any) -> None:
    if isinstance(value, _ATOMS):
        # Not a number is equal to nothing, zero to its negative: both go by their text.
        key += (name, type(value), value if value == value and value != 0 else repr(value))
    elif isinstance(value, (list, tuple)):
        items = tuple(_plain(item) for item in value if not isinstance(item, torch.Tensor))
        if items:
            key += (name, type(value), repr(items)[:MAX_TEXT])
    else:
        key += (name, type(value), str(value)[:MAX_TEXT] if isinstance(value, torch.device) else type(value).__name__)


def _plain(item: Any) -> Any:
    """An item of a list without what belongs to this process: an object's text would hold its address."""
    if item is None or isinstance(item, _ATOMS):
        return item
    if isinstance(item, (list, tuple)):
        return tuple(_plain(inner) for inner in item if not isinstance(inner, torch.Tensor))
    return str(item) if isinstance(item, (torch.device, torch.SymInt)) else type(item).__name__


def _texts(key: tuple[object, ...]) -> dict[str, str]:
    return {str(key[index]): str(key[index + 2])[:MAX_TEXT] for index in range(0, len(key), 3)}
