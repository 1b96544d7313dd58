"""Small scalars of the workload's own functions, read as they make a call (CA-25)."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable
from types import CodeType, FrameType

from paritrace.capture.plans import ContextVariable

MAX_TEXT = 120  # as of other scalars
PREFIX = "context."
UNBOUND = "<unbound>"
_SCALARS = frozenset({int, float, bool, str, type(None)})
_READS_LOCALS = frozenset({"locals", "vars", "eval", "exec", "dir"})
NOT_READ = "<not read: the function looks at its own locals>"

Names = tuple[str, ...]


class ContextVariables:
    """Reads the variables that a plan names; keeps none of their values and leaves nothing behind in the frame.

    Args:
        below_root: the path of a source file below the checkout's root, None for others.
    """

    def __init__(self, chosen: Iterable[ContextVariable], below_root: Callable[[str], str | None]) -> None:
        self._names: dict[tuple[str, str], Names] = {}
        for one in chosen:
            key = (one.file, one.function)
            self._names[key] = (*self._names.get(key, ()), one.name)
        self._below_root = below_root
        self._known: dict[int, tuple[CodeType, Names]] = {}  # the code is kept, so that its identity stays its own

    def of(self, frame: FrameType) -> dict[str, str]:
        """The chosen variables of the function that this frame runs, as text."""
        if not self._names:
            return {}
        code = frame.f_code
        found = self._known.get(id(code))
        if found is None:
            file = self._below_root(code.co_filename)
            names = () if file is None else self._names.get((file, code.co_qualname), ())
            found = self._known[id(code)] = (code, names)
        return _values(frame, found[1]) if found[1] else {}


def _values(frame: FrameType, names: Names) -> dict[str, str]:
    code = frame.f_code
    snapshot = bool(code.co_flags & inspect.CO_OPTIMIZED) and sys.version_info < (3, 13)
    if snapshot and _READS_LOCALS.intersection(code.co_names):
        return {PREFIX + name: NOT_READ for name in names}  # it would see our reading in its own dictionary
    values = frame.f_locals
    told = {PREFIX + name: _text(values[name]) if name in values else UNBOUND for name in names}
    if snapshot:
        values.clear()  # a copy that lives as long as the frame, and would hold the workload's tensors (CA-34)
    return told


def _text(value: object) -> str:
    """Exact types only: the text of others would run code of the workload."""
    if type(value) not in _SCALARS:
        return f"<not a scalar: {type(value).__name__}>"
    return str(value)[:MAX_TEXT]
