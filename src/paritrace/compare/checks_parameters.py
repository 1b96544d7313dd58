"""Folds the state inventories of a run: which parameters have gradients, change, are alike; which batches repeat."""

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache

from paritrace.evidence.calls import Kind, State, StateNames, StepMark
from paritrace.evidence.fingerprints import elements
from paritrace.evidence.gaps import Gap

MASK = 0xFFFF_FFFF_FFFF_FFFF
ONES = {  # the bytes of 1.0, little endian
    "float64": bytes.fromhex("000000000000f03f"),
    "float32": bytes.fromhex("0000803f"),
    "bfloat16": bytes.fromhex("803f"),
    "float16": bytes.fromhex("003c"),
}
REPEATS_KEPT = 100  # enough to see the pattern; all are counted


class Parameters:
    """Figures per parameter name, over all recorded steps; memory grows only by one number per distinct batch.

    `changed` and `unchanged` count steps that ended in an optimizer step with a gradient for that parameter and whose
    following state was recorded; the last step of a run has no following state.
    """

    def __init__(self) -> None:
        self.trainable: set[str] = set()
        self.known: dict[str, None] = {}  # every parameter, in order
        self.with_gradient: Counter[str] = Counter()
        self.without_gradient: Counter[str] = Counter()
        self.zero_gradient: Counter[str] = Counter()
        self.changed: Counter[str] = Counter()
        self.unchanged: Counter[str] = Counter()
        self.alike: list[frozenset[str]] = []  # names whose elements were the same at every begin so far
        self.filled: set[str] = set()  # zero or one throughout when first seen
        self.num_begins = 0
        self.num_gradient_states = 0
        self.batches: dict[int, tuple[int, int]] = {}  # digest of a batch -> (step, micro-batch) it was first seen
        self.repeated: list[tuple[tuple[int, int], tuple[int, int]]] = []  # (first, again), the first of them
        self.num_repeated = 0
        self.num_batches = 0
        self._values: dict[str, str] = {}
        self._with_gradient_now: set[str] = set()
        self._stepped = False
        self._ordered = False  # the order of a batch's elements is recorded, before its elements

    def see_step(self, mark: StepMark) -> None:
        """A step has ended."""
        self._stepped = mark.optimizer_steps > 0

    def see_state(self, state: State, state_names: Mapping[int, StateNames], kinds: Mapping[int, Kind]) -> None:
        """Takes one group of the inventory."""
        names = state_names.get(state.names)
        if names is None or len(names.names) != len(state.values):
            return
        match (state.moment, names.group):
            case ("begin", "parameter"):
                self._begin(names, state, kinds)
            case ("grads", "gradient"):
                self._gradients(names, state, kinds)
            case ("batch", "batch_order"):
                self._ordered = True
                self._batch(state)
            case ("batch", "batch") if not self._ordered:  # a capture of old: only the elements are known
                self._batch(state)
            case _:
                pass

    def _begin(self, names: StateNames, state: State, kinds: Mapping[int, Kind]) -> None:
        values = {n: v for n, v in zip(names.names, state.values, strict=True) if not isinstance(v, Gap)}
        for name, kind in zip(names.names, names.kinds, strict=True):
            self.known[name] = None
            if kind in kinds and kinds[kind].requires_grad:
                self.trainable.add(name)
            if not self.num_begins and kind in kinds and values.get(name) in fingerprints_of_fills(kinds[kind]):
                self.filled.add(name)
        if self._stepped:
            self._count_changes(values)
        self._split_alike(values, dict(zip(names.names, names.kinds, strict=True)), kinds)
        self._values = values
        self._with_gradient_now = set()
        self._stepped = False
        self.num_begins += 1

    def _count_changes(self, values: Mapping[str, str]) -> None:
        for name in self._with_gradient_now & values.keys() & self._values.keys():
            kept = values[name] == self._values[name]
            (self.unchanged if kept else self.changed)[name] += 1

    def _split_alike(self, values: Mapping[str, str], kind_ids: Mapping[str, int], kinds: Mapping[int, Kind]) -> None:
        groups = self.alike if self.num_begins else [frozenset(values)]
        split: dict[tuple[int, str, int], set[str]] = {}
        for number, group in enumerate(groups):
            for name in group & values.keys():
                kind = kinds.get(kind_ids[name])
                split.setdefault((number, values[name], kind.num_elements if kind else -1), set()).add(name)
        self.alike = [frozenset(names) for names in split.values() if len(names) > 1]

    def _gradients(self, names: StateNames, state: State, kinds: Mapping[int, Kind]) -> None:
        self.num_gradient_states += 1
        for name, kind, value in zip(names.names, names.kinds, state.values, strict=True):
            if isinstance(value, Gap):
                if kind == -1:
                    self.without_gradient[name] += 1
                continue
            self.with_gradient[name] += 1
            self._with_gradient_now.add(name)
            if kind in kinds and value == fingerprint_of_zeros(kinds[kind]):
                self.zero_gradient[name] += 1

    def _batch(self, state: State) -> None:
        known = [value for value in state.values if not isinstance(value, Gap)]
        if not known:
            return
        self.num_batches += 1
        digest = hash((state.names, *known))
        here = (state.step, state.microbatch)
        first = self.batches.setdefault(digest, here)
        if first == here:
            return
        self.num_repeated += 1
        if len(self.repeated) < REPEATS_KEPT:
            self.repeated.append((first, here))

    def is_alias(self, name: str, held: set[str]) -> bool:
        """Says whether a parameter is another name of a held one: alike at every recorded step, and not by filling.

        Parameters filled with one value start alike without being one; once they change, they part.
        """
        group = next((group for group in self.alike if name in group), frozenset[str]())
        return bool(group & held) and (any(self.changed[other] for other in group) or name not in self.filled)

    def tied(self) -> list[tuple[str, ...]]:
        """Returns groups of parameters whose elements were the same at every recorded step and changed in between."""
        if self.num_begins < 2:
            return []
        return sorted(tuple(sorted(group)) for group in self.alike if all(self.changed[name] for name in group))


def fingerprints_of_fills(kind: Kind, /) -> set[str]:
    """Returns `elements-u64` of a tensor of this kind that is zero or one throughout."""
    one = ONES.get(kind.dtype)
    if one is None or not kind.num_elements:
        return {fingerprint_of_zeros(kind)}
    ones = _of_one(one) * kind.num_elements & MASK
    return {fingerprint_of_zeros(kind), format(ones, "016x")}


def fingerprint_of_zeros(kind: Kind, /) -> str:
    """Returns `elements-u64` of a tensor of this kind that is zero throughout."""
    if not kind.num_elements:
        return ""
    itemsize = kind.logical_nbytes // kind.num_elements
    return format(_of_one(bytes(itemsize)) * kind.num_elements & MASK, "016x")


@lru_cache(maxsize=64)
def _of_one(element: bytes) -> int:
    """Returns `elements-u64` of a single element: asked for every gradient of every step."""
    return elements(element, len(element))
