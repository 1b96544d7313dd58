"""Compares each recomputed call with its original, by the fingerprints of their outputs (CP-25)."""

from msgspec import Struct

from paritrace.evidence.calls import Call, Flag
from paritrace.evidence.gaps import Gap


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
        self._outputs: dict[int, tuple[tuple[int, str | None], ...]] = {}  # of the calls of this step

    def forget(self) -> None:
        """A step has ended: nothing of it is recomputed any more."""
        self._outputs.clear()

    def see(self, call: Call) -> None:
        """Takes a call; an original comes before its recomputation."""
        outputs = tuple((slot.kind, None if isinstance(slot.bits, Gap) else slot.bits) for slot in call.outputs)
        if not call.flags & Flag.RECOMPUTE:
            self._outputs[call.id] = outputs
            return
        original = self._outputs.get(call.link)
        if original is None or len(original) != len(outputs):
            self.not_comparable += 1
            return
        self._judge(call, original, outputs)

    def _judge(
        self, call: Call, original: tuple[tuple[int, str | None], ...], outputs: tuple[tuple[int, str | None], ...]
    ) -> None:
        compared = [
            (slot, ours[1] == theirs[1])
            for slot, (ours, theirs) in enumerate(zip(original, outputs, strict=True))
            if ours[1] is not None and theirs[1] is not None
        ]
        different = [slot for slot, same in compared if not same]
        if different:
            self.different += 1
            self.first_different = self.first_different or Recomputed(call, call.link, different[0])
        elif compared:
            self.equal += 1
        else:
            self.not_comparable += 1
