"""Turns one session's state inventories into rows that can be compared between ranks."""

from collections import Counter
from typing import NamedTuple

import numpy as np

from paritrace.compare.checks_heads import Geometry, Head, geometry_of
from paritrace.compare.checks_replicas import PARTIAL
from paritrace.compare.checks_states import SHARED, Known, Layout, Places, Row, Series, States, Values, When
from paritrace.compare.state_groups import BUFFER, GRADIENT, PARAMETER
from paritrace.evidence.calls import Kind, State, StateNames
from paritrace.evidence.distributed import Placement
from paritrace.evidence.gaps import Gap

HEX_DIGITS = 16  # of one value
NO_GRADIENT = (1 << 64) - 1  # a parameter without one, where other ranks have one, is a disagreement
WITHOUT_KIND = -1


class _Plan(NamedTuple):
    """Which values of a row are shared by replicas, and as what. `optional`: those that may have no tensor at all."""

    layout: Layout
    places: Places
    optional: Known


class StateRows:
    """Reads the states of one session."""

    def __init__(self, head: Head, states: States) -> None:
        self._head = head
        self._states = states
        self._names: dict[int, StateNames] = {}
        self._plans: dict[int, _Plan] = {}
        self._kinds: dict[int, Kind] = {}
        self._placements: dict[int, Placement] = {}
        self._step = -1
        self._times: Counter[tuple[str, Layout]] = Counter()

    def see(self, record: Kind | Placement | StateNames) -> None:
        """Takes a definition."""
        match record:
            case Kind():
                self._kinds[record.id] = record
            case Placement():
                self._placements[record.kind] = record
            case StateNames():
                self._names[record.id] = record

    def see_state(self, state: State) -> None:
        """Takes one group of the inventory."""
        names = self._names.get(state.names)
        if names is None or names.group not in SHARED or len(names.names) != len(state.values):
            return
        plan = self._plans.get(names.id)
        if plan is None:
            plan = self._plans[names.id] = self._plan(names)
        values = _values(state, plan)
        if values is not None and plan.layout and state.moment in ("begin", "grads"):
            self._states.see(plan.layout, Row(self._head.rank, self._when(state, plan.layout), *values))

    def _when(self, state: State, layout: Layout) -> When:
        if state.step != self._step:
            self._step = state.step
            self._times.clear()
        key = (state.moment, layout)
        self._times[key] += 1
        return When(state.step, state.moment, self._times[key] - 1)

    def _plan(self, names: StateNames) -> _Plan:
        series: dict[Series, int] = {}  # a name that comes twice counts once
        for place, (name, kind) in enumerate(zip(names.names, names.kinds, strict=False)):
            one = self._series(names.group, name, kind)
            if one is not None:
                series.setdefault(one, place)
        optional = [names.group == GRADIENT and names.kinds[place] == WITHOUT_KIND for place in series.values()]
        return _Plan(tuple(series), np.array(list(series.values()), np.int64).reshape(-1), np.array(optional, np.bool_))

    def _series(self, group: str, name: str, kind: int) -> Series | None:
        """Returns the series of a state; None when no other rank is known to hold a replica of it."""
        owner = _owner(group, name)
        held = BUFFER if group == BUFFER else PARAMETER
        number = self._states.replicas.set_of(self._head.rank, held, owner)
        if number < 0 or not self._lies_as(owner, held, kind):
            return None
        return Series(group, name, number, self._geometry(owner, held, kind))

    def _lies_as(self, owner: str, held: str, kind: int) -> bool:
        """Says whether a state is distributed as its parameter is; a partial sum is equal on no two ranks."""
        placement = self._placements.get(kind)
        of_owner = self._head.holdings[held, owner].placement
        if placement is None:
            return True
        if any(one.startswith(PARTIAL) for one in placement.placements):
            return False
        return of_owner is None or placement.placements == of_owner.placements

    def _geometry(self, owner: str, held: str, kind: int) -> Geometry:
        if kind == WITHOUT_KIND:
            return self._head.holdings[held, owner].geometry
        return geometry_of(self._kinds.get(kind))


def _owner(group: str, name: str) -> str:
    """Returns the parameter that a state belongs to: `layer.weight` of `layer.weight:exp_avg`."""
    return name.rpartition(":")[0] if group == "optimizer_state" else name


def _values(state: State, plan: _Plan) -> tuple[Values, Known] | None:
    """Returns the shared values as numbers and which of them were read; None for a row that holds something else."""
    try:
        data = bytes.fromhex("".join(state.values))  # type: ignore[arg-type]  # a gap raises: the slow way then
    except TypeError:
        return _with_gaps(state, plan)
    except ValueError:
        return None
    if len(data) * 2 != HEX_DIGITS * len(state.values):
        return None
    values = np.frombuffer(data, ">u8")[plan.places].astype(np.uint64)
    return values, np.ones(len(values), np.bool_)


def _with_gaps(state: State, plan: _Plan) -> tuple[Values, Known] | None:
    places: list[int] = plan.places.tolist()
    chosen = [state.values[place] for place in places]
    known = [not isinstance(value, Gap) for value in chosen]
    try:
        values = [0 if isinstance(value, Gap) else int(value, 16) for value in chosen]
        numbers = np.array(values, np.uint64)
    except (ValueError, OverflowError):
        return None
    absent = plan.optional & ~np.array(known, np.bool_)
    numbers[absent] = NO_GRADIENT
    return numbers, np.array(known, np.bool_) | absent
