"""State of schedulers, scalers, samplers and loaders at the begin of a step, read without effects (CA-29)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from paritrace.capture.pytorch.plain_values import Value, attributes
from paritrace.capture.pytorch.reachable import Family, Reachable

Row = tuple[str, Value]

# Not state of their own: what stands here is in the inventory itself, holds addresses, or is the data.
ELSEWHERE = {
    Family.SCHEDULER: frozenset(
        {"optimizer", "_optimizer", "_schedulers", "_get_lr_called_within_step", "_is_initial"}
    ),
    Family.SCALER: frozenset({"_per_optimizer_states"}),
    Family.SAMPLER: frozenset({"dataset", "data_source", "sampler", "batch_sampler"}),
}
SPOKEN = {Family.SCHEDULER: "scheduler", Family.SCALER: "grad_scaler", Family.POSITION: "sampler_position"}
MAX_UNREAD = 20  # names of what could not be read; a program with more has made its own kind of state


class TrainingState:
    """What is reachable of the training's own state, and the names of what is not."""

    def __init__(self) -> None:
        self._reachable = Reachable()
        self._unread: dict[str, None] = {}
        self._met: set[Family] = set()  # an iterator of data goes with its epoch, and was there all the same

    def groups(self, step: int) -> Iterator[tuple[str, list[Row]]]:
        """The groups of the inventory that have anything, each with its names and values."""
        self._reachable.look(step)
        self._unread.clear()
        for family in (Family.SCHEDULER, Family.SCALER, Family.SAMPLER):
            rows = [row for name, found in self._reachable.of(family) for row in self._rows(family, name, found)]
            if rows:
                yield family.value, rows
        positions = [row for name, found in self._reachable.of(Family.POSITION) for row in self._position(name, found)]
        if positions:
            yield Family.POSITION.value, positions

    def not_captured(self) -> tuple[str, ...]:
        """What was looked for and not found, and what was found and could not be read, each by name."""
        self._met |= {family for family in SPOKEN if self._has(family)}
        absent = [f"{word} (none found)" for family, word in SPOKEN.items() if family not in self._met]
        loaders = [name for name, _ in self._reachable.of(Family.STATEFUL_LOADER)]
        # Its state_dict() runs code of the dataset's, which may advance it.
        return (*absent, *(f"sampler_position:{name}" for name in loaders), *list(self._unread)[:MAX_UNREAD])

    def _has(self, family: Family) -> bool:
        return next(self._reachable.of(family), None) is not None

    def _rows(self, family: Family, name: str, found: Any) -> Iterator[Row]:
        for attribute, value in attributes(found, leave_out=ELSEWHERE[family]):
            if value is None:
                self._unread[f"{family.value}:{name}.{attribute}"] = None
            else:
                yield f"{name}.{attribute}", value

    def _position(self, name: str, found: Any) -> Iterator[Row]:
        for attribute, value in attributes(found):
            if attribute == "num_yielded" and value is not None:
                yield f"{name}.{attribute}", value
