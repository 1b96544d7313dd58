"""How long a capture itself takes, on the workload's thread (CA-2, `--budget`).

Counted is the time inside our hooks. Not counted: torch's own way into a hook or a dispatch mode, the writing thread
(which takes the interpreter's lock for a while), and memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class OwnTime:
    """Adds up the time spent in the functions it stands before; nested ones count once."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._inside = False
        self.total_ns = 0

    def cover(self, owner: object, *names: str) -> None:
        """Measure these methods of an object from now on."""
        for name in names:
            vars(owner)[name] = self.timed(getattr(owner, name))

    def timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, measured."""

        def measured(*args: Any, **kwargs: Any) -> Any:
            if self._inside:
                return function(*args, **kwargs)
            self._inside = True
            began = self._now_ns()
            try:
                return function(*args, **kwargs)
            finally:
                self._inside = False
                self.total_ns += self._now_ns() - began

        return measured
