"""Values a JSON object may hold, in one form: lists for tuples, text keys, finite and whole numbers (IN-1)."""

from math import isfinite
from typing import cast

MAX_DEPTH = 48  # of metadata: a line of an artifact has at most 64 levels (EV-2)
_SMALLEST, _LARGEST = -(2**63), 2**64 - 1


def whole(value: object, /) -> int | None:
    """Return a whole number that a field of a record holds, None for any other value."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63 else None


def canonical(value: dict[str, object]) -> dict[str, object]:
    """Return an object in its canonical form, sharing nothing that can change.

    Raises:
        ValueError: a key that is no text, a value that JSON has not, a number that is not finite or beyond 64 bits.
    """
    return {_require_key(key): _plain(item, 1) for key, item in value.items()}


def _plain(value: object, depth: int) -> object:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        return _whole(value)
    if isinstance(value, float):
        return _finite(value)
    if depth >= MAX_DEPTH:
        raise ValueError(f"metadata is nested deeper than {MAX_DEPTH}")
    if isinstance(value, dict):
        items = cast("dict[object, object]", value).items()
        return {_require_key(key): _plain(item, depth + 1) for key, item in items}
    if isinstance(value, list | tuple):
        return [_plain(item, depth + 1) for item in cast("list[object]", value)]
    raise ValueError(f"metadata holds a {type(value).__name__}, which JSON has not")


def _require_key(key: object) -> str:
    if not isinstance(key, str):
        raise ValueError(f"a key of metadata is {key!r}, not text")
    return key


def _whole(value: int) -> int:
    if not _SMALLEST <= value <= _LARGEST:
        raise ValueError(f"metadata holds the integer {value}, beyond 64 bits: write it as text")
    return int(value)


def _finite(value: float) -> float:
    if not isfinite(value):
        raise ValueError(f"metadata holds {value}, which JSON cannot hold")
    return float(value)
