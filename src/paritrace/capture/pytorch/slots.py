"""Slots of a call: the tensors among its arguments and results, each with kind, fingerprint and producer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from paritrace.capture.definitions import Definitions
from paritrace.capture.pytorch.dumps import Dumps
from paritrace.capture.pytorch.flights import Flights, Landing
from paritrace.capture.pytorch.kinds import Kinds, KnownKind
from paritrace.capture.pytorch.operators import Operator
from paritrace.capture.pytorch.parts import part_of
from paritrace.capture.pytorch.storages import IN_FLIGHT, UNINITIALISED, WriteLog
from paritrace.capture.pytorch.summarising import Summarising
from paritrace.evidence import calls
from paritrace.evidence.calls import How

_Tensor = torch.Tensor
_PLAIN = frozenset({torch.Tensor, torch.nn.Parameter})


class Slots:
    """Makes the lean slots of level `op`; with `--statistics` full summaries too, of what is not inherited.

    `details` holds the summaries made since it was last taken.
    """

    def __init__(
        self,
        *,
        kinds: Kinds,
        log: WriteLog,
        flights: Flights,
        definitions: Definitions,
        summaries: Summarising | None,
        dumps: Dumps | None = None,
    ) -> None:
        self.details: list[calls.Detail] = []
        self._flights = flights
        self._summaries = summaries
        self._dumps = dumps
        self._kinds = kinds
        self._log = log
        self._name = definitions.name
        self._unknown = definitions.origin(calls.OriginKind.UNKNOWN, "")
        self._positions: dict[tuple[object, ...], int] = {}

    def inputs(
        self, record: int, args: tuple[Any, ...], kwargs: dict[str, Any], overwritten: frozenset[int | str]
    ) -> tuple[list[calls.Slot], bool]:
        """Slots of the arguments, and whether any of them asks for a gradient."""
        found: list[calls.Slot] = []
        asks = False
        for index, value in enumerate(args):
            if isinstance(value, _Tensor):
                asks = asks or value.requires_grad
                self._add_input(found, record, self._position("args", index), value, index in overwritten)
            elif isinstance(value, (list, tuple)):
                for inner, item in enumerate(value):
                    if isinstance(item, _Tensor):
                        asks = asks or item.requires_grad
                        name = self._position("args", index, inner)
                        self._add_input(found, record, name, item, index in overwritten)
                    elif isinstance(item, (list, tuple)):
                        for name, tensor in self._named_tensors(("args", index, inner), item):
                            asks = asks or tensor.requires_grad
                            self._add_input(found, record, name, tensor, index in overwritten)
        for key, value in kwargs.items():
            for name, item in self._named_tensors(("kwargs", key), value):
                asks = asks or item.requires_grad
                self._add_input(found, record, name, item, key in overwritten)
        return found, asks

    def outputs(
        self, record: int, operator: Operator, arguments: tuple[tuple[Any, ...], dict[str, Any]], result: Any
    ) -> tuple[calls.Slot, ...]:
        """Slots of the results, then of arguments written in place that were not returned."""
        if isinstance(result, _Tensor) and not operator.written:  # most calls
            return (self._output(record, 0, self._name("out"), result, operator, False),)
        named = list(self._named_results(result))
        written: list[tuple[int, torch.Tensor]] = []
        if operator.written:
            written = list(self._written(operator.written, *arguments))
            for _, tensor in written:
                kind = self._kinds.of(tensor)
                if kind.readable:
                    self._log.written(tensor, kind, partly=operator.partly)
        wrote = {id(tensor) for _, tensor in written}
        if operator.written_results:
            for index in operator.written_results:
                self._log.written(named[index][1], self._kinds.of(named[index][1]))
                wrote.add(id(named[index][1]))
        seen = {id(tensor) for _, tensor in named}
        named += [(name, tensor) for name, tensor in written if id(tensor) not in seen]
        return tuple(
            self._output(record, index, name, tensor, operator, id(tensor) in wrote)
            for index, (name, tensor) in enumerate(named)
        )

    def launched(
        self, record: int, operator: Operator, arguments: tuple[tuple[Any, ...], dict[str, Any]], result: Any
    ) -> tuple[tuple[calls.Slot, ...], list[tuple[torch.Tensor, Landing]]]:
        """Slots of what a collective writes, in flight from now on, and where each of them will land."""
        named = list(self._named_results(result))
        seen = {id(tensor) for _, tensor in named}
        named += [item for item in self._written(operator.written, *arguments) if id(item[1]) not in seen]
        slots: list[calls.Slot] = []
        landings: list[tuple[torch.Tensor, Landing]] = []
        for index, (name, tensor) in enumerate(named):
            kind = self._kinds.of(tensor)
            landing = self._flights.landing(tensor, kind, call=record, index=index)
            slots.append(calls.Slot(name, kind.id, landing.gap or IN_FLIGHT))
            if self._dumps is not None:
                self._dumps.slot(slots[-1], None, kind, (record, "o", index))
            landings.append((tensor, landing))
        return tuple(slots), landings

    def written(self, operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[torch.Tensor]:
        """The tensors that a call writes in place."""
        for _, tensor in self._written(operator.written, args, kwargs):
            yield tensor

    def void(self, operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A call that is not recorded writes these: what was known of them is void."""
        for _, tensor in self._written(operator.written, args, kwargs):
            kind = self._kinds.of(tensor)
            if kind.readable:
                self._log.written(tensor, kind, partly=operator.partly)

    def from_storage(self, output: calls.Slot) -> calls.Slot:
        """The input slot for a storage that an operator made into this output: the same bytes, source unknown."""
        return calls.Slot(self._name("storage"), output.kind, output.bits, self._unknown, output.how)

    def _add_input(
        self, found: list[calls.Slot], record: int, name: int, tensor: torch.Tensor, overwritten: bool
    ) -> None:
        kind = self._kinds.of(tensor)
        if type(tensor) not in _PLAIN:
            tensor = part_of(tensor)
        if not kind.readable:
            found.append(calls.Slot(name, kind.id, kind.geometry.gap or UNINITIALISED, self._unknown))
        elif overwritten:
            found.append(calls.Slot(name, kind.id, UNINITIALISED, self._log.source(tensor, kind)))
        else:
            found.append(self._read(tensor, kind, name, (record, "i", len(found))))
        if self._dumps is not None:
            self._dumps.slot(found[-1], tensor, kind, (record, "i", len(found) - 1))

    def _read(self, tensor: torch.Tensor, kind: KnownKind, name: int, where: tuple[int, str, int]) -> calls.Slot:
        """The slot of an input whose bytes are there."""
        bits, how, source = self._log.read(tensor, kind)
        slot = calls.Slot(name, kind.id, bits, source, how)
        if self._summaries is not None:
            self._summarise(self._summaries, tensor, kind, slot, where)
        return slot

    def _summarise(
        self,
        summaries: Summarising,
        tensor: torch.Tensor,
        kind: KnownKind,
        slot: calls.Slot,
        where: tuple[int, str, int],
    ) -> None:
        if slot.how is How.READ and isinstance(slot.bits, str):
            record, side, index = where
            bits = slot.bits if kind.geometry.contiguous else None
            self.details.append(summaries.detail(tensor, kind, call=record, side=side, slot=index, bits=bits)[0])

    def _output(
        self, record: int, index: int, name: int, tensor: torch.Tensor, operator: Operator, wrote: bool
    ) -> calls.Slot:
        kind = self._kinds.of(tensor)
        if type(tensor) not in _PLAIN:
            tensor = part_of(tensor)
        if not kind.readable:
            slot = calls.Slot(name, kind.id, kind.geometry.gap or UNINITIALISED)
        else:
            bits, how = self._log.produced(
                tensor, kind, by=(record, index), wrote=wrote, uninitialised=operator.uninitialised
            )
            slot = calls.Slot(name, kind.id, bits, -1, how)
            if self._summaries is not None:
                self._summarise(self._summaries, tensor, kind, slot, (record, "o", index))
        if self._dumps is not None:
            self._dumps.slot(slot, tensor, kind, (record, "o", index))
        return slot

    def _written(
        self, keys: frozenset[int | str], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Iterator[tuple[int, torch.Tensor]]:
        for index, value in enumerate(args):
            if index in keys:
                yield from self._named_tensors(("args", index), value)
        for key, value in kwargs.items():
            if key in keys:
                yield from self._named_tensors(("kwargs", key), value)

    def _named_tensors(self, place: tuple[object, ...], value: Any) -> Iterator[tuple[int, torch.Tensor]]:
        if isinstance(value, _Tensor):
            yield self._position(*place), value
        elif isinstance(value, (list, tuple)):
            for inner, item in enumerate(value):
                yield from self._named_tensors((*place, inner), item)

    def _named_results(self, result: Any) -> Iterator[tuple[int, torch.Tensor]]:
        """Tensors of a result; the slot of a single one is `out`, of others `out[0]`, `out[0][1]`."""
        if isinstance(result, _Tensor):
            yield self._name("out"), result
        elif isinstance(result, (list, tuple)):
            for index, item in enumerate(result):
                if isinstance(item, _Tensor):
                    yield self._position("out", index), item
                else:
                    yield from self._named_tensors(("out", index), item)

    def _position(self, *key: object) -> int:
        found = self._positions.get(key)
        if found is None:
            root, first, *rest = key
            text = f"kwargs.{first}" if root == "kwargs" else f"{root}[{first}]"
            found = self._positions[key] = self._name(text + "".join(f"[{index}]" for index in rest))
        return found
