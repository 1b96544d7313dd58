"""Plain values of a Python object in clear, or their digest: a rule that calls nothing of the object's own (CA-29)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
import xxhash

from paritrace.capture.pytorch.memory import geometry_of, holds_bytes, logical_buffer, scalar_value
from paritrace.capture.pytorch.rng import state_digest
from paritrace.evidence import summaries
from paritrace.evidence.gaps import CaptureGap, Gap

Value = str | Gap[CaptureGap]
MAX_CLEAR = 64  # characters of a value that stands in the journal as itself; a longer one by its xxh3-64
MAX_ITEMS = 100_000  # of one list or table: a shuffled order of more indices costs too much in every step
MAX_DEPTH = 4
_WORDS = (bool, int, float, str, bytes, type(None))


class UnreadError(Exception):
    """Something in a value has no plain form."""


def attributes(found: Any, *, leave_out: frozenset[str] = frozenset()) -> Iterator[tuple[str, Value | None]]:
    """Each attribute of an object with its value; None where it is none that can be read without running code."""
    own = _own(found)
    for name, value in sorted(own.items()):
        if name not in leave_out:
            public = name.lstrip("_")
            yield (name if public in own else public), plain(value)


def _own(found: Any) -> Mapping[str, Any]:
    try:
        return {str(name): value for name, value in object.__getattribute__(found, "__dict__").items()}
    except AttributeError:
        return {}


def plain(value: Any) -> Value | None:
    """A value in clear, its digest, a gap for a tensor without readable bytes, or None."""
    if issubclass(type(value), torch.Tensor):
        return tensor_value(value)
    if type(value) is torch.Generator:
        on_cpu = value.device.type == "cpu"
        return state_digest(value) if on_cpu else Gap(CaptureGap.UNSUPPORTED_DEVICE, value.device.type)
    try:
        text = _text(value, depth=0)
    except UnreadError:
        return None
    return text if len(text) <= MAX_CLEAR else xxhash.xxh3_64_hexdigest(text.encode("utf-8", "surrogatepass"))


def tensor_value(tensor: torch.Tensor) -> Value:
    """A number in clear, of more elements their `elements-u64`; read by address, on an accelerator not at all."""
    geometry = geometry_of(tensor)
    if geometry.gap is not None:
        return geometry.gap
    if not holds_bytes(tensor, geometry, tensor.data_ptr()):
        return Gap(CaptureGap.NO_DATA, "storage holds no bytes")
    number = scalar_value(tensor)
    if number is not None:
        whole = not (tensor.is_floating_point() or tensor.is_complex())
        return repr(int(number) if whole else number)
    return format(summaries.element_sum(logical_buffer(tensor.data_ptr(), geometry), geometry.dtype), "016x")


def _text(value: Any, *, depth: int) -> str:
    """Like `repr`, by the built-in types' own methods, whatever a subclass makes of them."""
    cls = type(value)
    for plain_type in _WORDS:
        if issubclass(cls, plain_type):
            spell: Any = plain_type.__repr__
            return str(spell(value))
    if depth >= MAX_DEPTH:
        raise UnreadError
    if issubclass(type(value), torch.Tensor):
        known = tensor_value(value)
        if isinstance(known, Gap):
            raise UnreadError
        return known
    if issubclass(cls, (list, tuple)):
        items = (
            list(value) if cls in (list, tuple) else list((list if issubclass(cls, list) else tuple).__iter__(value))
        )
        return f"[{', '.join(_text(item, depth=depth + 1) for item in _bounded(items))}]"
    if issubclass(cls, dict):
        pairs = [(_text(key, depth=depth + 1), item) for key, item in _bounded(list(dict.items(value)))]
        return f"{{{', '.join(f'{key}: {_text(item, depth=depth + 1)}' for key, item in sorted(pairs, key=_first))}}}"
    raise UnreadError


def _bounded(items: list[Any]) -> list[Any]:
    if len(items) > MAX_ITEMS:
        raise UnreadError
    return items


def _first(pair: tuple[str, Any]) -> str:
    return pair[0]
