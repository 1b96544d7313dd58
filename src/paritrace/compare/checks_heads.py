"""Reads the head of a session: who its rank is, and what it says of groups, meshes, placements and replicas (CA-3)."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from paritrace.compare.checks_parameters import fingerprints_of_fills
from paritrace.compare.checks_reduced import Reduced
from paritrace.compare.layouts import Layout
from paritrace.compare.state_groups import BUFFER, PARAMETER
from paritrace.evidence.calls import Call, Kind, Name, Row, State, StateNames, StepMark
from paritrace.evidence.definition import Definition
from paritrace.evidence.distributed import Collective, Group, Mesh, Placement, Replicated
from paritrace.evidence.gaps import Gap
from paritrace.evidence.journal import Loss

HEAD_STEPS = 2  # a training without modules shows its parameters only after its first optimizer step
Geometry = tuple[str, tuple[int, ...]]  # dtype, shape


@dataclass(frozen=True, slots=True)
class Holding:
    """A parameter or buffer as a rank first showed it, or, if filled with one value then, as it was a step later.

    `value` is "" where it was not read.
    """

    kind: Kind | None
    placement: Placement | None
    step: int
    value: str

    @property
    def geometry(self) -> Geometry:
        return geometry_of(self.kind)

    @property
    def is_filled(self) -> bool:
        """Whether it is zero or one throughout, which makes tensors alike that have nothing to do with each other."""
        return self.kind is not None and self.value in fingerprints_of_fills(self.kind)


@dataclass(slots=True)
class Head:
    """What a rank says of itself up to the end of its second step."""

    rank: int
    layout: Layout = field(default_factory=Layout)
    holdings: dict[tuple[str, str], Holding] = field(default_factory=dict[tuple[str, str], Holding])
    reduced: Reduced = field(default_factory=Reduced)
    _kinds: dict[int, Kind] = field(default_factory=dict[int, Kind])
    _names: dict[int, StateNames] = field(default_factory=dict[int, StateNames])
    _steps: int = 0

    def see(self, record: Row | Definition | Loss) -> bool:
        """Takes a record; says whether the head goes on."""
        match record:
            case Group() | Mesh() | Placement() | Replicated():
                self.layout.add(record)
            case Kind():
                self._kinds[record.id] = record
            case StateNames():
                self._names[record.id] = record
            case State():
                self._hold(record)
            case StepMark():
                self._steps += 1
            case Name() | Call() | Collective():
                self.reduced.see(record)
            case _:
                pass
        return self._steps < HEAD_STEPS

    def _hold(self, state: State) -> None:
        names = self._names.get(state.names)
        if names is None or names.group not in (PARAMETER, BUFFER) or state.moment != "begin":
            return
        for name, kind, value in zip(names.names, names.kinds, state.values, strict=False):
            held = self.holdings.get((names.group, name))
            if held is None or held.is_filled:  # what is filled with one value is told apart once it has changed
                known = "" if isinstance(value, Gap) else value
                self.holdings[names.group, name] = Holding(
                    self._kinds.get(kind), self.layout.placements.get(kind), state.step, known
                )


def read_head(records: Iterable[Row | Definition | Loss], /, *, rank: int) -> Head:
    """Returns the head of a session; the rest of its journal is not read."""
    head = Head(rank)
    for record in records:
        if not head.see(record):
            break
    return head


def geometry_of(kind: Kind | None, /) -> Geometry:
    """Returns dtype and shape: strides are left out, since the fingerprint of a state is blind to order."""
    return ("", ()) if kind is None else (kind.dtype, kind.shape)
