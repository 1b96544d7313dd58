"""What one session recorded of distributed training, and collectives joined to their completion (CA-3, CA-31)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from paritrace.compare.call_columns import CallColumns
from paritrace.compare.layouts import Layout, LayoutRecord
from paritrace.compare.settings import Settings
from paritrace.evidence.calls import Call, Completed, Slot
from paritrace.evidence.distributed import Collective, CollectiveCounts, Group, Mesh, Placement, Replicated
from paritrace.evidence.gaps import CaptureGap, CountedGap, Gap

IN_FLIGHT = CountedGap.NOT_OBSERVABLE_IN_FLIGHT.value
"""The gap under which collectives are counted that were never seen to complete (CA-31)."""

DistributedRecord = LayoutRecord | Collective | CollectiveCounts | Completed


@dataclass(slots=True, kw_only=True)
class Distributed(Layout):
    """Its layout, with the collectives, those that completed, and counts; empty where nothing is distributed."""

    collectives: dict[int, Collective] = field(default_factory=dict[int, Collective])  # by call
    completed: dict[int, Completed] = field(default_factory=dict[int, Completed])  # by call
    counts: list[CollectiveCounts] = field(default_factory=list[CollectiveCounts])

    def take(self, record: DistributedRecord, *, settings: Settings) -> None:
        """Take one record in; counts of steps that are not compared are left out."""
        match record:
            case Group() | Mesh() | Placement() | Replicated():
                self.add(record)
            case Collective():
                self.collectives[record.call] = record
            case Completed():
                self.completed[record.call] = record
            case CollectiveCounts():
                if settings.takes_step(record.step):
                    self.counts.append(record)

    def is_defined(self, call: Call) -> bool:
        """Whether the group of a collective is known; of any other call there is nothing to know."""
        collective = self.collectives.get(call.id)
        return collective is None or collective.group in self.groups

    def group_of(self, call: Call) -> Group | None:
        """The group of a collective, None of any other call."""
        collective = self.collectives.get(call.id)
        return None if collective is None else self.groups[collective.group]


def coordinate_of(meshes: Iterable[Mesh]) -> str:
    """Where a rank stands in the mesh with the most dimensions, as `dp 0, tp 1`; empty without a mesh."""
    widest = max(meshes, key=lambda mesh: len(mesh.dims), default=None)
    if widest is None:
        return ""
    return ", ".join(f"{name} {place}" for name, place in zip(widest.dims, widest.coordinate, strict=False))


def complete(calls: CallColumns, distributed: Distributed) -> int:
    """Give collectives, in place, the results that they had when done; return how many were never seen done.

    What else is in flight reads or shares what a collective writes: that stays as it was recorded.
    """
    unseen = 0
    for place in calls.with_gap(CaptureGap.IN_FLIGHT):
        call = calls[place]
        if not _is_in_flight(call.outputs):
            continue
        done = distributed.completed.get(call.id)
        if done is None or len(done.bits) != len(call.outputs):
            unseen += call.id in distributed.collectives
        else:
            calls.replace_outputs(place, done.bits)
    return unseen


def _is_in_flight(slots: Sequence[Slot]) -> bool:
    return any(isinstance(slot.bits, Gap) and slot.bits.gap is CaptureGap.IN_FLIGHT for slot in slots)
