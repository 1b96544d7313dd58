"""Figures of slots whose tensors both runs keep whole: found by call and name, compared once each (CP-11)."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from paritrace.compare.element_figures import ElementFigures
from paritrace.compare.elements import element_figures, mask_misfit, not_comparable
from paritrace.compare.masks import Mask
from paritrace.errors import ParitraceError
from paritrace.evidence.dumps import Dumped, Kept
from paritrace.evidence.gaps import Gap
from paritrace.runs.reading import Run
from paritrace.runs.tensors import WholeTensor, dumped_slots, holds_tensors, open_tensor
from paritrace.runs.views import SessionView

OPENED = 64  # mapped files: a call has some ten slots
Slots = Mapping[tuple[int, str, str], Dumped]
SIDES = ("baseline", "candidate")


class Told(NamedTuple):
    """The figures of a slot, or why there are none; both empty where neither run was asked to keep it."""

    figures: ElementFigures | None = None
    why: str = ""


NOTHING = Told()


class Where(NamedTuple):
    """A slot of a pair of calls: rank, the calls' ids, "i", "o" or "" for either, the slot's name, the module."""

    rank: int
    calls: tuple[int, int]
    side: str
    slot: str
    module: str


class KeptSlots:
    """Compares what two runs keep. Nothing is read before it is asked for, and no tensor twice with the same other."""

    def __init__(
        self, runs: tuple[Run, Run], pairs: Sequence[tuple[SessionView, SessionView]], *, masks: tuple[Mask, ...] = ()
    ) -> None:
        self._runs = runs
        self._pairs = {rank: [pair for pair in pairs if pair[0].rank == rank] for rank in {p[0].rank for p in pairs}}
        self._masks = masks
        self._slots: dict[int, tuple[Slots, Slots]] = {}
        self._known: dict[tuple[str, str, Mask | None], Told] = {}
        self.any = any(holds_tensors(run) for run in runs)
        self._open = lru_cache(maxsize=OPENED)(self._opened)

    def told(self, where: Where) -> Told:
        """The figures of a slot that differs."""
        if not self.any:
            return NOTHING
        found = self._found(where)
        if found is None:
            return NOTHING
        for side, one in zip(SIDES, found, strict=True):
            if one is None:
                return Told(why=f"the {side} did not keep it")
            if isinstance(one, Gap):
                return Told(
                    why=f"the {side} did not keep it: {one.gap.value}{f' ({one.detail})' if one.detail else ''}"
                )
        digests = (str(found[0]), str(found[1]))
        mask = next((mask for mask in self._masks if mask.covers(where.module, where.slot)), None)
        key = (*digests, mask)
        if key not in self._known:
            self._known[key] = self._compared(digests, mask)
        return self._known[key]

    def _found(self, where: Where) -> tuple[Kept | None, Kept | None] | None:
        """What both sides keep of a slot; None where neither keeps any."""
        sides = self._of_rank(where.rank)
        if sides is None:
            return None
        for side in where.side or "oi":
            left, right = (slots.get((call, side, where.slot)) for slots, call in zip(sides, where.calls, strict=True))
            if left is not None or right is not None:
                return (None if left is None else left.tensor, None if right is None else right.tensor)
        return None

    def _of_rank(self, rank: int) -> tuple[Slots, Slots] | None:
        """The slots of a rank; of several restarts a call's id does not say which is meant."""
        pairs = self._pairs.get(rank, [])
        if len(pairs) != 1:
            return None
        if rank not in self._slots:
            ours, theirs = pairs[0]
            self._slots[rank] = (dumped_slots(self._runs[0], ours), dumped_slots(self._runs[1], theirs))
        return self._slots[rank]

    def _compared(self, digests: tuple[str, str], mask: Mask | None) -> Told:
        try:
            left, right = self._open(0, digests[0]), self._open(1, digests[1])
            masking = None if mask is None else mask.tensor()
        except ParitraceError as error:  # a damaged file is told where its figures would stand
            return Told(why=error.message)
        why = not_comparable(left, right) or ("" if masking is None else mask_misfit(left.shape, masking))
        if why:
            return Told(why=why)
        return Told(element_figures(left, right, mask=masking, mask_name="" if mask is None else mask.name))

    def _opened(self, side: int, digest: str) -> WholeTensor:
        return open_tensor(self._runs[side], digest)
