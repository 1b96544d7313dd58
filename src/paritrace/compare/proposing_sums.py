"""Parameters whose elements are the same though no map makes them one: fused, shards, reordered (CP-5): pure."""

from collections.abc import Collection, Iterator, Mapping
from itertools import combinations

from paritrace.compare.proposals import Ambiguous, Related, RelatedParameters
from paritrace.compare.proposing import Matches
from paritrace.compare.proposing_weights import Total, Weight, Weights, added, ancestors
from paritrace.evidence.fingerprints import Scheme

MOST_PARTS = 4  # q, k, v and a gate
MOST_TRIED = 24  # unmatched parameters of one module: of more, no sums of several are tried
SCHEME = Scheme.ELEMENTS_U64.value


class Names:
    """Which parameter of the candidate has the name of which of the baseline, once modules are matched."""

    def __init__(self, found: Matches, a: Weights, b: Weights) -> None:
        self._found = found
        pairs = list(_same_owner(found, a, b))
        self.there = dict(pairs)
        self.alone = (_alone(a, set(self.there)), _alone(b, set(self.there.values())))

    def homes(self, name: str) -> tuple[str, str]:
        """The innermost matched module around a parameter of the baseline, on both sides."""
        ours = next(module for module in ancestors(name) if module in self._found.there)
        return ours, self._found.there[ours]


def _same_owner(found: Matches, a: Weights, b: Weights) -> Iterator[tuple[str, str]]:
    """Parameters of matched modules with one sum: by name first, else where one of each module has it."""
    for ours, theirs in found.there.items():
        mine, others = _own(a, ours), _own(b, theirs)
        taken: set[str] = set()
        for leaf, weight in mine.items():
            other = others.get(leaf)
            if other is not None and other.total == weight.total and weight.total is not None:
                taken.add(leaf)
                yield weight.name, other.name
        rest = [[w for leaf, w in side.items() if leaf not in taken and w.total] for side in (mine, others)]
        for weight in rest[0]:
            same = [[w for w in side if w.total == weight.total] for side in rest]
            if len(same[0]) == len(same[1]) == 1:
                yield weight.name, same[1][0].name


def _own(side: Weights, module: str) -> dict[str, Weight]:
    return {n.rpartition(".")[2]: w for n, w in side.weights.items() if n.rpartition(".")[0] == module}


def _alone(side: Weights, paired: Collection[str]) -> dict[str, Weight]:
    return {name: weight for name, weight in side.weights.items() if name not in paired}


def related(names: Names, found: Matches, a: Weights, b: Weights) -> list[RelatedParameters]:
    """Everything that sums relate beyond one and one."""
    return [*_reordered(names, a, b), *_fused(names, found), *_shards(names)]


def _reordered(names: Names, a: Weights, b: Weights) -> Iterator[RelatedParameters]:
    for ours, theirs in names.there.items():
        shapes = (a.weights[ours].shape, b.weights[theirs].shape)
        orders = (a.orders.get(ours), b.orders.get(theirs))
        if shapes[0] != shapes[1]:
            told = f"equal {SCHEME}, shapes {list(shapes[0] or ())} and {list(shapes[1] or ())}"
            yield _one(Related.OTHER_SHAPE, ours, theirs, told)
        elif orders[0] and orders[1] and orders[0] != orders[1]:
            yield _one(Related.OTHER_ORDER, ours, theirs, f"equal {SCHEME}, read by a module in another order")


def _one(relation: Related, ours: str, theirs: str, evidence: str) -> RelatedParameters:
    return RelatedParameters(relation=relation, baseline=(ours,), candidate=(theirs,), evidence=evidence)


def _fused(names: Names, found: Matches) -> Iterator[RelatedParameters]:
    """A parameter of one run that is the sum of several of the matched module around it, in the other."""
    for ours, theirs in found.there.items():
        left = _directly(ours, names.alone[0], found.there)
        right = _directly(theirs, names.alone[1], found.back)
        for whole in right:
            parts = _parts(whole, left)
            if parts:
                yield _fuse(tuple(part.name for part in parts), (whole.name,), whole)
        for whole in left:
            parts = _parts(whole, right)
            if parts:
                yield _fuse((whole.name,), tuple(part.name for part in parts), whole)


def _directly(module: str, alone: Mapping[str, Weight], matched: Mapping[str, str]) -> list[Weight]:
    """The unmatched parameters whose innermost matched module is this one."""
    return [w for name, w in alone.items() if next(m for m in ancestors(name) if m in matched) == module and w.total]


def _parts(whole: Weight, others: list[Weight]) -> tuple[Weight, ...]:
    """The only set of two or more that has the sum of the whole; empty where there is none, or more than one."""
    leaf = whole.name.rpartition(".")[2]
    alike = [w for w in others if w.name.rpartition(".")[2] == leaf]
    if len(alike) > MOST_TRIED:
        return ()
    found = [
        parts
        for number in range(2, MOST_PARTS + 1)
        for parts in combinations(alike, number)
        if added([part.total for part in parts if part.total]) == whole.total
    ]
    return found[0] if len(found) == 1 else ()


def _fuse(ours: tuple[str, ...], theirs: tuple[str, ...], whole: Weight) -> RelatedParameters:
    assert whole.total is not None  # a sum was compared with it
    return RelatedParameters(
        relation=Related.FUSED,
        baseline=ours,
        candidate=theirs,
        evidence=f"{SCHEME} {whole.total[0]:016x}: the sum of the parts, {whole.total[1]:,} elements",
        use="slots of an alignment map, relation elements_partition",
    )


def _shards(names: Names) -> Iterator[RelatedParameters]:
    """Parts on the ranks of one run that add up to a whole of the other; names may be the same."""
    for sharded, whole, side in ((0, 1, BASELINE), (1, 0, CANDIDATE)):
        wholes = [weight for weight in names.alone[whole].values() if weight.total]
        for weight in names.alone[sharded].values():
            total = added([part[2] for part in weight.parts]) if len(weight.parts) > 1 else None
            same = [other for other in wholes if other.total == total]
            if total is not None and len(same) == 1:
                yield _shard(weight, same[0], side)


BASELINE, CANDIDATE = "baseline", "candidate"


def _shard(weight: Weight, whole: Weight, side: str) -> RelatedParameters:
    ours, theirs = (weight.name, whole.name) if side == BASELINE else (whole.name, weight.name)
    dim = _dim(weight, whole)
    return RelatedParameters(
        relation=Related.SHARDS,
        baseline=(ours,),
        candidate=(theirs,),
        evidence=f"{SCHEME} of {len(weight.parts)} ranks of the {side} adds up to that of the whole",
        use="" if dim is None else f"--dims {side}:{weight.name}=ranks:{dim}",
    )


def _dim(weight: Weight, whole: Weight) -> int | None:
    """The one dim along which the parts have the size of the whole together."""
    shapes = [shape for _, shape, _ in weight.parts]
    wanted = whole.shape or ()
    dims = [
        dim
        for dim in range(len(wanted))
        if all(len(shape) == len(wanted) for shape in shapes)
        and sum(shape[dim] for shape in shapes) == wanted[dim]
        and all(shape[:dim] + shape[dim + 1 :] == wanted[:dim] + wanted[dim + 1 :] for shape in shapes)
    ]
    return dims[0] if len(dims) == 1 else None


def ambiguous(names: Names, told: Collection[str]) -> list[Ambiguous]:
    """Unmatched parameters with one sum on both sides, of which several could be meant; `told`: related otherwise."""
    groups: dict[Total, tuple[list[str], list[str]]] = {}
    for side, alone in enumerate(names.alone):
        for name, weight in alone.items():
            if weight.total is not None and name not in told:
                groups.setdefault(weight.total, ([], []))[side].append(name)
    return [
        Ambiguous(
            baseline=tuple(ours),
            candidate=tuple(theirs),
            why=f"{len(ours)} and {len(theirs)} parameters have {SCHEME} {total[0]:016x}",
        )
        for total, (ours, theirs) in groups.items()
        if ours and theirs
    ]
