"""One recorded call with the tensors that its run kept of it: everything that a program of it needs (CA-9, CP-26)."""

from collections.abc import Iterator, Mapping

from msgspec import Struct

from paritrace.evidence.calls import Call, Function, Kind, Name, Scalars, Slot
from paritrace.evidence.dumps import Dumped
from paritrace.runs.reading import Run


class KeptSlot(Struct, frozen=True):
    """A slot by its name, with its strides in elements as the workload had them; `sha256` is "" for one not kept."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    sha256: str


class KeptCall(Struct, frozen=True):
    """A call; `scalars` are its plain arguments by position or name, as the journal's short texts."""

    function: str
    scalars: Mapping[str, str]
    inputs: tuple[KeptSlot, ...]
    outputs: tuple[KeptSlot, ...]

    @property
    def missing(self) -> tuple[str, ...]:
        """The names of slots that the run did not keep."""
        return tuple(slot.name for slot in (*self.inputs, *self.outputs) if not slot.sha256)


def kept_call(run: Run, session_id: str, record_id: int) -> KeptCall | None:
    """The call with this id in a session's journal; None where there is none.

    Raises:
        EvidenceError: Refused: the journal is of another format or of a newer major version.
    """
    found: Call | None = None
    functions: dict[int, Function] = {}
    names: dict[int, str] = {}
    scalars: dict[int, Scalars] = {}
    kinds: dict[int, Kind] = {}
    dumped: dict[tuple[str, int], Dumped] = {}
    for record in run.records(session_id):
        match record:
            case Call() if record.id == record_id:
                found = record
            case Dumped() if record.call == record_id:
                dumped[record.side, record.slot] = record
            case Function():
                functions[record.id] = record
            case Name():
                names[record.id] = record.text
            case Scalars():
                scalars[record.id] = record
            case Kind():
                kinds[record.id] = record
            case _:
                pass
    if found is None:
        return None
    sides = {
        side: tuple(_slots(slots, side=side, names=names, kinds=kinds, dumped=dumped))
        for side, slots in (("i", found.inputs), ("o", found.outputs))
    }
    plain = scalars[found.scalars].values if found.scalars in scalars else {}
    return KeptCall(functions[found.function].name, plain, sides["i"], sides["o"])


def _slots(
    slots: tuple[Slot, ...],
    *,
    side: str,
    names: Mapping[int, str],
    kinds: Mapping[int, Kind],
    dumped: Mapping[tuple[str, int], Dumped],
) -> Iterator[KeptSlot]:
    for place, slot in enumerate(slots):
        kind, line = kinds[slot.kind], dumped.get((side, place))
        kept = line.tensor if line is not None and isinstance(line.tensor, str) else ""
        yield KeptSlot(names[slot.name], kind.dtype, kind.shape, kind.strides, kept)
