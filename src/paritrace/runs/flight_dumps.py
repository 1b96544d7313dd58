"""Reads dumps of PyTorch's flight recorder, pickled or JSON, without running anything that a pickle names (RS-13)."""

import io
import json
import pickle
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast

from paritrace.errors import EvidenceError

MAX_DUMP_BYTES = 256 << 20  # a buffer of 20,000 entries with stacks is a tenth of this
MOST_SHOWN = 5
MOST_FRAMES = 20
OPEN_STATES = frozenset({"scheduled", "started"})


class _Plain(pickle.Unpickler):
    """A pickle of plain values names nothing; one that does is refused."""

    def find_class(self, module: str, name: str, /) -> Any:
        raise pickle.UnpicklingError(f"it names {module}.{name}")


def open_operations(data: bytes, *, name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the operations of a dump that had not completed, in words, and the stack of the first of them.

    Raises:
        EvidenceError: Refused, code `bad_flight_dump`.
    """
    entries = _entries(data, name)
    left = [entry for entry in entries if entry.get("state") in OPEN_STATES]
    words = tuple(_words(entry) for entry in left[:MOST_SHOWN])
    if len(left) > MOST_SHOWN:
        words = (*words, f"and {len(left) - MOST_SHOWN:,} more")
    return words, _stack(left[0]) if left else ()


def _entries(data: bytes, name: str) -> list[dict[str, Any]]:
    try:
        found: Any = json.loads(data) if data[:1] in b"{[" else _Plain(io.BytesIO(data)).load()
        if isinstance(found, dict):
            found = cast("dict[str, Any]", found)["entries"]
        return _dictionaries(found)
    except Exception as error:  # noqa: BLE001  a damaged pickle raises anything
        raise EvidenceError(
            f"{Path(name).name} is no flight recorder dump of plain values: {type(error).__name__}: {error}",
            code="bad_flight_dump",
            fix="make it anew with TORCH_NCCL_DUMP_ON_TIMEOUT=1, or read it with torch's own analyzer",
        ) from None


def _words(entry: dict[str, Any]) -> str:
    number = entry.get("collective_seq_id", entry.get("seq_id", "?"))
    group = entry.get("process_group") or entry.get("pg_id", "?")
    if isinstance(group, list | tuple) and group:
        group = cast("Sequence[Any]", group)[-1]
    return f"{entry.get('profiling_name', 'an operation')} number {number} of group {group}: {entry.get('state')}"


def _stack(entry: dict[str, Any]) -> tuple[str, ...]:
    frames: list[Any] | None = entry.get("frames")
    if not isinstance(frames, list):
        return ()
    shown = _dictionaries(frames[:MOST_FRAMES])
    return tuple(f"{frame.get('filename')}:{frame.get('line')} {frame.get('name')}" for frame in shown)


def _dictionaries(values: Iterable[Any]) -> list[dict[str, Any]]:
    """Those of a dump's values that are dictionaries, as all of them should be."""
    return [cast("dict[str, Any]", value) for value in values if isinstance(value, dict)]
