"""Python values of a golden call: its trees of arguments with tensors read from their files (CP-26, CA-9)."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from paritrace.errors import EvidenceError, Outcome
from paritrace.evidence.dumps import TENSOR_KEY, Branch, KeptTensor, Missing, Node, PlainLeaf, TensorLeaf
from paritrace.evidence.gaps import Gap
from paritrace.runs.tensor_paths import tensor_path
from paritrace.runs.tensors import open_key

ABSENT = object()  # there is no live value at this place

_PLAIN: dict[str, Callable[[str], Any]] = {
    "none": lambda _: None,
    "ellipsis": lambda _: ...,
    "bool": lambda text: text == "True",
    "int": int,
    "float": float.fromhex,
    "complex": lambda text: complex(*map(float.fromhex, text.split(" "))),
    "str": str,
    "dtype": lambda text: vars(torch)[text],
    "device": torch.device,
    "layout": lambda text: vars(torch)[text.removeprefix("torch.")],
}


class Values:
    """Builds the arguments of one golden call. `not_forced` collects what had to be taken from the live call."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: dict[int, torch.Tensor] = {}
        self.not_forced: list[str] = []
        self.tensors: dict[str, torch.Tensor] = {}  # of arguments, by the path of the first leaf that holds each

    def tensor(self, kept: KeptTensor) -> torch.Tensor | None:
        """The tensor with the strides it had; two leaves of one number are one tensor; None where it was not kept."""
        if isinstance(kept.kept, Gap) or kept.placements:
            return None
        if kept.number not in self._made:
            self._made[kept.number] = _read(self._folder, kept).requires_grad_(_may_ask(kept))
        return self._made[kept.number]

    def build(self, node: Node, live: Any) -> Any:
        """The value of a tree. Where it has a gap, the live value of the same place stands in.

        Raises:
            EvidenceError: Failed, `replay_argument`: there is a gap and no live value.
        """
        match node:
            case TensorLeaf():
                found = self.tensor(node.tensor)
                if found is None:
                    return self._live(node.path, live)
                if all(found is not known for known in self.tensors.values()):
                    self.tensors[node.path] = found
                return found
            case PlainLeaf():
                return _PLAIN[node.kind](node.text)
            case Missing():
                return self._live(node.path, live)
            case Branch():
                return self._container(node, live)

    def _live(self, path: str, live: Any) -> Any:
        if live is ABSENT:
            raise EvidenceError(
                f"the argument {path} was not kept and this program passes none",
                code="replay_argument",
                fix="name a module around it or inside it, whose arguments are tensors and plain values",
                outcome=Outcome.FAILED,
            )
        self.not_forced.append(path)
        return live

    def _container(self, node: Branch, live: Any) -> Any:
        match node.kind:
            case "dict" | "dataclass":
                keys = [_PLAIN[key.kind](key.text) for key in node.keys]
                known = live if isinstance(live, Mapping) else getattr(live, "__dict__", {})
                items = {
                    key: self.build(item, known.get(key, ABSENT)) for key, item in zip(keys, node.items, strict=True)
                }
                return _mapping(node, items)
            case _:
                there = live if isinstance(live, (list, tuple)) else ()
                lives = [there[place] if place < len(there) else ABSENT for place in range(len(node.items))]
                found = [self.build(item, own) for item, own in zip(node.items, lives, strict=True)]
                return _sequence(node, found)


def _mapping(node: Branch, items: dict[Any, Any]) -> Any:
    cls = _class(node.cls)
    if node.kind == "dataclass" and cls is not None:
        made = object.__new__(cls)
        made.__dict__.update(items)
        return made
    return items if cls is None else cls(items)


def _sequence(node: Branch, items: list[Any]) -> Any:
    cls = _class(node.cls)
    if node.kind == "named_tuple" and cls is not None:
        return cls(*items)
    if node.kind == "size":
        return torch.Size(items)
    if node.kind == "slice":
        return slice(*items)
    return tuple(items) if node.kind == "tuple" else items


def _class(name: str) -> Any:
    """The class `module:qualname`, where the program has it too; its own module may be loaded for it."""
    if not name:
        return None
    module, _, qualified = name.partition(":")
    found: Any = importlib.import_module(module)
    for part in qualified.split("."):
        found = getattr(found, part)
    return found


def _may_ask(kept: KeptTensor) -> bool:
    dtype: torch.dtype = vars(torch)[kept.dtype]
    return kept.requires_grad and (dtype.is_floating_point or dtype.is_complex)


def _read(folder: Path, kept: KeptTensor) -> torch.Tensor:
    dtype: torch.dtype = vars(torch)[kept.dtype]
    made = torch.empty_strided(kept.shape, _dense(kept), dtype=dtype, device=kept.device)
    if made.numel():
        stored = open_key(tensor_path(folder, str(kept.kept)), TENSOR_KEY)
        words = torch.frombuffer(bytearray(stored.data), dtype=torch.uint8)
        made.copy_(words.view(dtype).reshape(kept.shape))
    return made


def _dense(kept: KeptTensor) -> tuple[int, ...]:
    """The strides; contiguous ones where the tensor was expanded, whose elements share memory that a copy cannot."""
    strides = [stride for stride, size in zip(kept.strides, kept.shape, strict=True) if size > 1]
    if all(strides):
        return kept.strides
    made: list[int] = []
    step = 1
    for size in reversed(kept.shape):
        made.append(step)
        step *= max(size, 1)
    return tuple(reversed(made))


def generators_set(folder: Path, states: Any) -> list[str]:
    """Put the recorded states into this process's generators; returns the names of those that could not be put."""
    missing: list[str] = []
    for state in states:
        if isinstance(state.words, Gap) or state.name not in _SETTERS:
            missing.append(f"generator {state.name}")
            continue
        words = open_key(tensor_path(folder, state.words), TENSOR_KEY)
        _SETTERS[state.name](words.array, state.rest)
    return missing


def open_tensor_words(folder: Path, sha256: str) -> torch.Tensor:
    """The bytes of a kept tensor."""
    return torch.frombuffer(bytearray(open_key(tensor_path(folder, sha256), TENSOR_KEY).data), dtype=torch.uint8)


def _set_torch(words: Any, _rest: Mapping[str, str]) -> None:
    torch.set_rng_state(torch.frombuffer(bytearray(words), dtype=torch.uint8))


def _set_python(words: Any, rest: Mapping[str, str]) -> None:
    import random

    gauss = rest.get("gauss", "")
    random.setstate((int(rest.get("version", "3")), tuple(map(int, words)), float.fromhex(gauss) if gauss else None))


def _set_numpy(words: Any, rest: Mapping[str, str]) -> None:
    import numpy as np

    cached = float.fromhex(rest.get("cached_gaussian") or "0x0p+0")
    state = (rest["bit_generator"], words.copy(), int(rest["pos"]), int(rest["has_gauss"]), cached)
    np.random.set_state(state)


_SETTERS: dict[str, Callable[[Any, Mapping[str, str]], None]] = {
    "torch_cpu": _set_torch,
    "python": _set_python,
    "numpy": _set_numpy,
}
