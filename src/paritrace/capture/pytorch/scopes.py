"""The stack of module calls being executed: the scope path of a call (CA-27)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from paritrace.capture.definitions import Definitions
from paritrace.evidence import calls

if TYPE_CHECKING:
    from paritrace.capture.pytorch.goldens import Begun


@dataclass(slots=True)
class Entered:
    """One module call on the stack. Holds no tensor and no module (CA-34)."""

    module_id: int
    record: int
    scope: int
    recorded: bool
    inputs: tuple[calls.Slot, ...]
    details: tuple[calls.Detail, ...]
    site: int
    workload_site: int
    started_ns: int
    golden: Begun | None = None  # kept so that it can be replayed (CA-9)


class ScopeStack:
    """Scopes of the thread that is observed."""

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._stack: list[Entered] = []
        self._counts: Counter[tuple[int, str, bool]] = Counter()
        self.scope = 0
        self.parent = -1
        self.depth = 0

    def open(self, module: str, cls: str, *, backward: bool) -> int:
        """The scope of a module call about to be entered: its nth call in this step and parent."""
        key = (self.scope, f"{module}\0{cls}", backward)
        nth = self._counts[key]
        self._counts[key] = nth + 1
        return self._definitions.scope(self.scope, module, cls, nth)

    def push(self, entered: Entered) -> None:
        self._stack.append(entered)
        self._settle()

    def pop(self, module_id: int) -> Entered | None:
        """Leave a module; entries above it, never seen to leave, are dropped. None if it is not on the stack."""
        for index in range(len(self._stack) - 1, -1, -1):
            if self._stack[index].module_id == module_id:
                entered = self._stack[index]
                del self._stack[index:]
                self._settle()
                return entered
        return None

    def step_ended(self) -> None:
        self._counts.clear()

    def _settle(self) -> None:
        self.depth = len(self._stack)
        self.scope = self._stack[-1].scope if self._stack else 0
        self.parent = next((entry.record for entry in reversed(self._stack) if entry.recorded), -1)
