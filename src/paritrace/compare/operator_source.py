"""Writes one recorded operator call down as Python source of torch's operators (CP-26): pure."""

import ast
import re
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import cast

from paritrace.runs.kept_calls import KeptCall

TORCHS = frozenset({"aten", "prims", "quantized", "inductor", "mkldnn", "mkl"})  # namespaces that come with torch
LONGEST = 120  # of a text in the journal: one as long was cut
_ARGUMENT = re.compile(r"args\[(\d+)\](?:\[(\d+)\])?|kwargs\.(\w+)(?:\[(\d+)\])?")
_OUTPUT = re.compile(r"out((?:\[\d+\])*)")
_OF_TORCH = re.compile(r"torch\.\w+")
_NUMBERS = {"nan": "nan", "inf": "inf", "-inf": "-inf"}

Key = int | str
"""A position, or the name of a keyword argument."""


def source_of(call: KeptCall, /) -> str:
    """A method `call` of the recorded tensors, in their order, that gives back a list of its outputs.

    Raises:
        ValueError: why it cannot be written down.
    """
    if call.function.partition(".")[0] not in TORCHS:
        raise ValueError(f"{call.function} does not come with torch, or meets other ranks")
    names = [slot.name for slot in call.inputs]
    arguments = ", ".join(_arguments(names, call.scalars))
    takes = ", ".join(["self", *(f"a{place}" for place in range(len(names)))])
    gives = ", ".join(f"found{_index(slot.name)}" for slot in call.outputs)
    return f"def call({takes}):\n    found = torch.ops.{call.function}({arguments})\n    return [{gives}]"


def _arguments(names: Sequence[str], scalars: Mapping[str, str]) -> list[str]:
    """The arguments as they are written: tensors by name, all others by the journal's text of them."""
    lists: dict[Key, dict[int, str]] = {}
    found: dict[Key, str] = {}
    for place, name in enumerate(names):
        key, item = _key(name)
        if item is None:
            found[key] = f"a{place}"
        else:
            lists.setdefault(key, {})[item] = f"a{place}"
    plain: dict[Key, str] = {int(name) if name.isdigit() else name: text for name, text in scalars.items()}
    for key, items in lists.items():
        found[key] = _list(items, plain.pop(key, "()"))
    found |= {key: _plain(key, text) for key, text in plain.items()}
    last = max((key for key in found if isinstance(key, int)), default=-1)
    return [
        *(found.get(place, "None") for place in range(last + 1)),
        *(f"{key}={text}" for key, text in found.items() if isinstance(key, str)),
    ]


def _key(name: str) -> tuple[Key, int | None]:
    match = _ARGUMENT.fullmatch(name)
    if match is None:
        raise ValueError(f"its argument {name} is no list of tensors")
    position, item, keyword, inner = match.groups()
    at = item if position is not None else inner
    return (int(position) if position is not None else keyword), None if at is None else int(at)


def _list(items: Mapping[int, str], others: str) -> str:
    """A list of tensors, and of what stands between them as the journal has it: `[None, a1]`."""
    rest = iter(_literal(others))
    length = len(items) + len(_literal(others))
    return "[" + ", ".join(items[place] if place in items else repr(next(rest)) for place in range(length)) + "]"


def _literal(text: str) -> Sequence[object]:
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        found = None
    if not isinstance(found, tuple) or len(text) >= LONGEST:
        raise ValueError(f"its list {text} was not recorded whole")
    return cast("tuple[object, ...]", found)


def _plain(key: Key, text: str) -> str:
    if len(text) >= LONGEST:
        raise ValueError(f"its argument {key} was cut in the record")
    if text in _NUMBERS or _OF_TORCH.fullmatch(text):
        return _NUMBERS.get(text, text)
    if key == "device":
        return f"torch.device({text!r})"
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return repr(text)
    if isinstance(value, float) and not isfinite(value):
        raise ValueError(f"its argument {key} is no number that can be written")
    return repr(list(cast("tuple[object, ...]", value))) if isinstance(value, tuple) else repr(value)


def _index(name: str) -> str:
    match = _OUTPUT.fullmatch(name)
    if match is None:
        raise ValueError(f"its result {name} is no tensor of a list")
    return match.group(1)
