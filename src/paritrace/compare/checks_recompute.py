"""Compares each recomputed call with its original, by the fingerprints of their outputs (CP-25)."""

from msgspec import Struct

from paritrace.evidence.calls import Call, Flag, Slot
from paritrace.evidence.gaps import Gap

RECOMPUTE = int(Flag.RECOMPUTE)  # a plain number: this is asked of every call


class Recomputed(Struct, frozen=True):
    call: Call
    original: int
    slot: int


class Recomputations:
    """Counts by what became of each; `first_different` is the earliest recomputation that gave other bits."""

    def __init__(self) -> None:
        self.equal = 0
        self.different = 0
        self.not_comparable = 0
        self.first_different: Recomputed | None = None
        self._outputs: dict[int, tuple[Slot, ...]] = {}  # of the calls of this step

    def forget(self) -> None:
        """A step has ended: nothing of it is recomputed any more."""
        self._outputs.clear()

    def see(self, call: Call) -> None:
        """Takes a call; an original comes before its recomputation."""
        if not call.flags & RECOMPUTE:
            self._outputs[call.id] = call.outputs
            return
        original = self._outputs.get(call.link)
        if original is None or len(original) != len(call.outputs):
            self.not_comparable += 1
            return
        self._judge(call, original)

    def _judge(self, call: Call, original: tuple[Slot, ...]) -> None:
        compared = [
            (slot, ours.bits == theirs.bits)
            for slot, (ours, theirs) in enumerate(zip(original, call.outputs, strict=True))
            if not isinstance(ours.bits, Gap) and not isinstance(theirs.bits, Gap)
        ]
        different = [slot for slot, same in compared if not same]
        if different:
            self.different += 1
            self.first_different = self.first_different or Recomputed(call, call.link, different[0])
        elif compared:
            self.equal += 1
        else:
            self.not_comparable += 1
