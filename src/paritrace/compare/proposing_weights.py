"""The parameters of one run at its first step, and the sums of its modules: what proposals are made of (CP-5, CA-8)."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import prod

from paritrace.compare.folds_sides import FoldSide
from paritrace.compare.folds_states import folded, states_of
from paritrace.evidence.mixing import MASK

Total = tuple[int, int, tuple[str, ...]]
"""Sum of `elements-u64` (mod 2^64), number of elements, dtypes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    """A parameter, whole. `total` is None where it is not known; `parts`: what each rank holds where it is no whole."""

    name: str
    shape: tuple[int, ...] | None
    total: Total | None
    parts: tuple[tuple[int, tuple[int, ...], Total], ...] = ()  # rank, shape, total


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """`called`: modules that were entered; `orders`: fingerprint of a parameter as a module read it whole, in order."""

    step: int
    weights: Mapping[str, Weight]
    called: frozenset[str]
    orders: Mapping[str, str] = field(default_factory=dict[str, str])

    def totals(self) -> dict[str, Total]:
        """The sum of every module's parameters, those below it included; modules with an unknown one have none."""
        below: dict[str, list[Total | None]] = defaultdict(list)
        for weight in self.weights.values():
            for module in ancestors(weight.name):
                below[module].append(weight.total)
        known = {module: [t for t in totals if t is not None] for module, totals in below.items()}
        return {module: added(totals) for module, totals in known.items() if len(totals) == len(below[module])}


def ancestors(name: str) -> Iterator[str]:
    """Every module around a parameter or module, the innermost first; the root is ""."""
    while name:
        name = name.rpartition(".")[0]
        yield name


def added(totals: list[Total]) -> Total:
    """The total of parameters together."""
    value = sum(total[0] for total in totals) & MASK
    dtypes = tuple(sorted({dtype for total in totals for dtype in total[2]}))
    return (value, sum(total[1] for total in totals), dtypes)


def weights_of(side: FoldSide, *, step: int, orders: Mapping[str, str]) -> Weights:
    """The parameters that a run began `step` with."""
    found: dict[str, Weight] = {}
    for key, parts in states_of(side).items():
        if (key.step, key.moment, key.group) != (step, "begin", "parameter"):
            continue
        whole = folded(parts, key=key, side=side)
        size = None if whole.shape is None else prod(whole.shape)
        if isinstance(whole.value, int) and size is not None:
            found[key.name] = Weight(name=key.name, shape=whole.shape, total=(whole.value, size, (whole.dtype,)))
            continue
        held = tuple(
            (part.part.rank, part.part.kind.shape, (part.value, part.part.kind.num_elements, (part.part.kind.dtype,)))
            for part in parts
            if part.part.kind is not None and isinstance(part.value, int)
        )
        found[key.name] = Weight(name=key.name, shape=None, total=None, parts=held if len(held) == len(parts) else ())
    called = frozenset(scope.module for recorded in side.ranks for scope in recorded.scopes.values())
    return Weights(step=step, weights=found, called=called, orders=orders)
