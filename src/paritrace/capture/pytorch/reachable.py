"""Live objects of a training that no hook shows: schedulers, scalers, samplers, iterators of data loaders (CA-29).

They are found among the objects that Python's collector keeps track of, by their exact type, so that nothing of the
workload is replaced, wrapped or asked: a wrapper around a scheduler's `step` would move the place that its warnings
name. A look costs some ten milliseconds in a large process, so it is taken at steps 0, 1, 4, 16, 64 … and when
something that was found has gone, as the iterator of an epoch does.
"""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator
from enum import StrEnum
from itertools import compress
from typing import Any

RARER = 4  # what a training has of these it makes before its first steps; later looks find what they hardly ever find


class Family(StrEnum):
    """What is looked for; the value is the group of the inventory."""

    SCHEDULER = "scheduler"
    SCALER = "scaler"
    SAMPLER = "sampler"
    POSITION = "data_position"
    STATEFUL_LOADER = "stateful_loader"


ROOTS = {
    Family.SCHEDULER: ("torch.optim.lr_scheduler", "LRScheduler"),
    Family.SCALER: ("torch.amp.grad_scaler", "GradScaler"),
    Family.SAMPLER: ("torch.utils.data.sampler", "Sampler"),
    Family.POSITION: ("torch.utils.data.dataloader", "_BaseDataLoaderIter"),
    Family.STATEFUL_LOADER: ("torchdata.stateful_dataloader", "StatefulDataLoader"),
}


class Reachable:
    """Objects found so far, named by class in the order in which they were found; none is kept alive."""

    def __init__(self) -> None:
        self._found: dict[Family, list[tuple[weakref.ref[Any], str]]] = {family: [] for family in Family}
        self._named: dict[str, int] = {}
        self._next_look = 0
        self._gone = False

    def look(self, step: int) -> None:
        """Look again if it is time to."""
        if step >= self._next_look or self._gone:
            self._next_look = max(1, step * RARER) if step >= self._next_look else self._next_look
            self._gone = False
            self._look()

    def of(self, family: Family) -> Iterator[tuple[str, Any]]:
        """The live objects of a family, with their names: `StepLR`, `StepLR#2`."""
        for reference, name in self._found[family]:
            found = reference()
            if found is not None:
                yield name, found

    def _look(self) -> None:
        classes = {cls: family for family in Family for cls in _classes(family)}
        known = {id(found) for family in Family for _, found in self.of(family)}
        # By type alone: asking an object for its class may run code of its own. Without a line of Python per object.
        every = gc.get_objects()
        for found in list(compress(every, map(classes.__contains__, map(type, every)))):
            if id(found) in known:
                continue
            family = classes[type(found)]
            self._found[family] = [entry for entry in self._found[family] if entry[0]() is not None]
            self._add(family, found)

    def _add(self, family: Family, found: Any) -> None:
        cls = "DataLoader" if family is Family.POSITION else type(found).__name__
        taken = {name for _, name in self._found[family]}
        number = next(n for n in range(1, len(taken) + 2) if _numbered(cls, n) not in taken)
        try:
            reference = weakref.ref(found, self._lost)
        except TypeError:  # a class with slots that allows none
            return
        self._found[family].append((reference, _numbered(cls, number)))

    def _lost(self, _: object) -> None:
        self._gone = True


def _numbered(cls: str, number: int) -> str:
    return cls if number == 1 else f"{cls}#{number}"


def _classes(family: Family) -> Iterator[type]:
    """The classes of a family that exist by now; a module that is not loaded has made no object."""
    module, name = ROOTS[family]
    root = vars(sys.modules[module]).get(name) if module in sys.modules else None
    waiting: list[type] = [root] if isinstance(root, type) else []
    seen: set[type] = set()
    while waiting:
        cls = waiting.pop()
        if cls not in seen:
            seen.add(cls)
            waiting += type.__subclasses__(cls)
    yield from seen
