"""What a workload says, as JSON can hold it: the control thread writes it, and may fail at nothing of it (SE-13)."""

from collections.abc import Mapping
from math import isfinite
from typing import Any, cast

from msgspec import json as msgspec_json

from paritrace.session.commands import Body

MAX_METRICS = 200  # told with every heartbeat; a table belongs into the workload's own files
MAX_TEXT = 400  # characters of one text: a message may hold a whole tensor
_MAX_INT = 2**63 - 1  # of a message; a larger one is a text


def plain_text(value: object, /) -> str:
    """Return the words of a value in UTF-8, cut; an error whose own words cannot be made is named by its type."""
    try:
        words = str(value)
    except Exception:  # noqa: BLE001  the workload's own code
        words = f"{type(value).__name__}, which has no words that could be shown"
    words = words.encode("utf-8", "backslashreplace").decode()
    return words if len(words) <= MAX_TEXT else f"{words[:MAX_TEXT]} …"


def plain_metrics(metrics: object, /) -> Body:
    """Return the metrics that JSON can hold: numbers and texts. A number that is none (`nan`, `inf`) becomes a text;
    a value of another type, a tensor for example, is named by its type and not read: that might wait for a device."""
    if metrics is None:
        return {}
    if not isinstance(metrics, Mapping):
        return {"metrics": f"not told: of type {type(metrics).__name__}"}
    try:
        held = list(dict(cast("Mapping[object, object]", metrics)).items())  # at once: a step may be adding to it
    except Exception as error:  # noqa: BLE001  the workload's own mapping
        return {"metrics": f"not told: reading them raised {type(error).__name__}"}
    told = {plain_text(name): _plain(value) for name, value in held[:MAX_METRICS]}
    return told if len(held) <= MAX_METRICS else {**told, "…": f"{len(held) - MAX_METRICS} more"}


def require_plain(value: object, kind: Any, /) -> None:
    """Raise what encoding and decoding raise where a value is not of `kind` once it has been written as JSON: it is
    told then as any fault of the workload, while the work thread can still tell it."""
    msgspec_json.decode(msgspec_json.encode(value), type=kind)


def _plain(value: object) -> float | int | str:
    if isinstance(value, str):
        return plain_text(value)
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value) if abs(value) <= _MAX_INT else f"an integer of {value.bit_length()} bits"
    if isinstance(value, float):
        return float(value) if isfinite(value) else str(value)
    return f"not told: of type {type(value).__name__}"
