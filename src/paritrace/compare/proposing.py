"""Which modules of two runs hold the same elements, by sums that one place of each side has alone (CP-5): pure.

The fingerprint `elements-u64` is additive, so that a module has one as well: the sum over all parameters below it.
Equal sums match a fused projection with the parts of it, one level up. Where several modules have one sum, names or the
modules around them must tell, or nothing is proposed (P2).
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from paritrace.compare.proposing_weights import Total, Weights

BY_SUM, BY_NAME = "sum", "name"


@dataclass(slots=True)
class Matches:
    """Modules of the baseline that correspond to modules of the candidate, with how that was told."""

    there: dict[str, str] = field(default_factory=dict[str, str])
    back: dict[str, str] = field(default_factory=dict[str, str])
    how: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, ours: str, theirs: str, how: str) -> None:
        self.there[ours], self.back[theirs], self.how[ours] = theirs, ours, how


def matched(a: Weights, b: Weights) -> Matches:
    """Match modules from the root down, until nothing more is told; each is matched once."""
    totals = (a.totals(), b.totals())
    found = Matches()
    found.add("", "", BY_NAME)
    progress = True
    while progress:
        progress = False
        for ours in sorted(found.there, key=lambda module: (module.count("."), module)):
            for mine, their, how in list(_within(ours, found.there[ours], totals, found)):
                found.add(mine, their, how)
                progress = True
    return found


def _within(
    ours: str, theirs: str, totals: tuple[Mapping[str, Total], Mapping[str, Total]], found: Matches
) -> Iterator[tuple[str, str, str]]:
    """What can be matched below a matched pair: equal names first, then sums that one place of each side has."""
    left = [module for module in _below(ours, totals[0]) if module not in found.there]
    right = {module for module in _below(theirs, totals[1]) if module not in found.back}
    named = {
        module: same
        for module in left
        if (same := _moved(module, ours, theirs)) in right and totals[0][module] == totals[1][same]
    }
    yield from ((module, same, BY_NAME) for module, same in named.items())
    rest_a = _by_total((module for module in left if module not in named), totals[0])
    rest_b = _by_total(sorted(right - set(named.values())), totals[1])
    for total, mine in rest_a.items():
        yield from ((x, y, BY_SUM) for x, y in _pairs(mine, rest_b.get(total, [])))


def _below(module: str, totals: Mapping[str, Total]) -> list[str]:
    return sorted(other for other in totals if other and (not module or other.startswith(f"{module}.")))


def _moved(name: str, ours: str, theirs: str) -> str:
    rest = name[len(ours) :].removeprefix(".")
    return f"{theirs}.{rest}" if theirs else rest


def _by_total(modules: Iterable[str], totals: Mapping[str, Total]) -> dict[Total, list[str]]:
    found: dict[Total, list[str]] = defaultdict(list)
    for module in modules:
        if totals[module][1]:
            found[totals[module]].append(module)
    return found


def _pairs(ours: list[str], theirs: list[str]) -> list[tuple[str, str]]:
    """Modules of one sum: one and one, or each inside the next on both sides; of unlike chains the innermost."""
    if not _is_chain(ours) or not _is_chain(theirs):
        return []
    if len(ours) == len(theirs):
        return list(zip(ours, theirs, strict=True))
    return [(ours[-1], theirs[-1])]


def _is_chain(modules: list[str]) -> bool:
    """Whether each of these, given by rising depth, holds the next, so that their sums are equal of necessity."""
    return bool(modules) and all(inner.startswith(f"{outer}.") for outer, inner in pairwise(modules))
