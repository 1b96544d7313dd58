"""Which forward call a backward call belongs to, and which original a recomputed one repeats (CA-10)."""

from __future__ import annotations

from dataclasses import dataclass

from paritrace.capture.pytorch.internals import AutogradNode, sequence_number
from paritrace.evidence import calls

ACCUMULATE = "torch::autograd::AccumulateGrad"
NO_LINK = -1
_FUNCTION_SUFFIX = "Backward"  # nodes of custom Functions; torch's own are numbered: AddmmBackward0


@dataclass(frozen=True, slots=True)
class Link:
    """The record a call is linked to (-1: none) and whether more than one answer was possible."""

    record: int
    ambiguous: bool


UNLINKED = Link(NO_LINK, False)
AMBIGUOUS = Link(NO_LINK, True)


class ForwardNodes:
    """Claims of autograd nodes by the forward calls whose output owns them, by sequence number of one thread.

    A call owns node n only if the number rose since the previous call, gradients are on and an input asks for them;
    inside a custom Function gradients are off, and the node then belongs to the whole group of its calls. Numbers are
    given per thread and a node does not say of which, so that with a forward pass on another thread no link is sure.
    """

    def __init__(self) -> None:
        self._last = sequence_number()
        self._owners: dict[int, tuple[int, str]] = {}
        self._groups: dict[int, int] = {}
        self._outer: tuple[int, str] | None = None
        self.other_threads = False

    def outer(self, base: str, *, grad_enabled: bool, asks_for_grad: bool) -> None:
        """An operator on a wrapper, such as a DTensor, is dispatched: its node belongs to the call of the same operator
        on what is wrapped, which has no node of its own."""
        now = sequence_number()
        if now > self._last:
            self._last = now
            self._outer = None
            if not grad_enabled or asks_for_grad:
                self._outer = (now - 1, base if grad_enabled else "")

    def claim(self, record: int, *, base: str, grad_enabled: bool, asks_for_grad: bool) -> None:
        """A forward call is being dispatched."""
        now = sequence_number()
        if now <= self._last:
            if self._outer is not None:
                self._claim_outer(self._outer, record, base)
            return
        self._outer = None
        self._last = now
        if not grad_enabled:
            self._groups.setdefault(now - 1, record)
        elif asks_for_grad:
            self._owners[now - 1] = (record, base)

    def _claim_outer(self, outer: tuple[int, str], record: int, base: str) -> None:
        number, wanted = outer
        if base == wanted:
            self._owners[number] = (record, base)
            self._outer = None
        else:
            self._groups.setdefault(number, record)

    def link(self, node: AutogradNode, name: str) -> Link:
        """The forward call of the node that a backward call runs under."""
        if self.other_threads:
            return AMBIGUOUS
        number = node._sequence_nr()
        owner = self._owners.get(number)
        if owner is not None:
            return Link(owner[0], False) if _fits(name, owner[1]) else AMBIGUOUS
        group = self._groups.get(number)
        if group is None:
            return UNLINKED
        return AMBIGUOUS if _is_of_an_operator(name) else Link(group, False)

    def forget(self) -> None:
        """A step has ended; its graph is gone or is not followed further."""
        self._owners.clear()
        self._groups.clear()
        self._outer = None
        self.other_threads = False


class Originals:
    """Forward calls of this step by scope, function and site, for recognising what a checkpoint repeats."""

    def __init__(self) -> None:
        self._calls: dict[tuple[object, ...], list[tuple[int, tuple[calls.Slot, ...]]]] = {}
        self._repeated: set[int] = set()

    def add(self, key: tuple[object, ...], record: int, inputs: tuple[calls.Slot, ...]) -> None:
        self._calls.setdefault(key, []).append((record, inputs))

    def find(self, key: tuple[object, ...], inputs: tuple[calls.Slot, ...]) -> Link:
        """The one call of that key; of several, the first with equal inputs that was not repeated yet."""
        found = self._calls.get(key, [])
        if len(found) == 1:
            return Link(found[0][0], False)
        wanted = [slot.bits for slot in inputs]
        for record, captured in found:
            if [slot.bits for slot in captured] == wanted and record not in self._repeated:
                self._repeated.add(record)
                return Link(record, False)
        return AMBIGUOUS if found else UNLINKED

    def forget(self) -> None:
        self._calls.clear()
        self._repeated.clear()


def _fits(node: str, base: str) -> bool:
    """Whether a node's name can be of this operator: `AddmmBackward0` of addmm, `NllLossBackward0` of nll_loss."""
    stem = node.rpartition("Backward")[0].replace("_", "").lower()
    return bool(stem) and bool(base) and (stem in base or base in stem)


def _is_of_an_operator(node: str) -> bool:
    """Nodes of torch's own operators are numbered, `MulBackward0`; those of custom Functions are not."""
    return node[-1:].isdigit()
