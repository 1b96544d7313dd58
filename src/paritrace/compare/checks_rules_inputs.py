"""Invariants of batches and random generators between ranks (CP-25, A-17): pure rules.

Which generators must agree is known only from a mesh. Along a tensor-parallel dimension torch's own generator must
agree where ranks draw from it for the same tensors (under sequence parallelism they draw for parts of one, and need
not), and Megatron's `model-parallel-rng` must differ. Along a data-parallel dimension torch's own generator must differ
where the forward pass draws from it, unless the mesh is Megatron's, whose data-parallel ranks share their streams.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from paritrace.compare.checks_across import Across
from paritrace.compare.checks_joined import Joined
from paritrace.compare.checks_meshes import DATA_PARALLEL, MEGATRON, TENSOR_PARALLEL, RankSet, sets_along, wrapper_sets
from paritrace.compare.checks_result import Evidence, Invariant, Outcome
from paritrace.compare.checks_rules_parameters import NAMES_KEPT
from paritrace.compare.checks_rules_presence import BETWEEN_RANKS, compared_told
from paritrace.compare.checks_sharing import bits_of
from paritrace.compare.checks_telling import ranks_told, sides_told
from paritrace.compare.state_groups import PARAMETER

OBSERVED = "undeclared; they hold the whole model alike"
OWN_GENERATORS = ("torch_cpu", "torch_cuda")  # and `torch_cuda:0`
MODEL_PARALLEL = "model-parallel-rng"
NOT_RELATED = "no wrapper, mesh or equal model says which ranks are data-parallel (name the mesh: run --mesh)"
NOT_DRAWN = "no generator advanced in the recorded steps"
ROLES_UNKNOWN = "generators advance, and no mesh says which of them ranks must share (name it: run --mesh)"


def input_invariants(across: Across, /) -> Iterator[Invariant]:
    """Yields the invariants of batches and of generators."""
    yield _batches(across)
    yield _generators(across)


def data_parallel(across: Across, /) -> tuple[RankSet, ...]:
    """Returns the sets of data-parallel ranks: by mesh and wrapper, else those that hold the whole model alike."""
    heads = across.replicas.heads
    declared = (*sets_along(heads, DATA_PARALLEL), *wrapper_sets(heads))
    joined = Joined(sorted(heads))
    for one in declared:
        joined.join(one.ranks)
    found = [tuple(sorted(ranks)) for ranks in joined.sets() if len(ranks) > 1]
    if found:
        return tuple(RankSet(ranks, _basis(ranks, declared)) for ranks in found)
    return tuple(RankSet(ranks, OBSERVED) for ranks in _whole_models(across))


def _basis(ranks: Sequence[int], declared: Sequence[RankSet]) -> str:
    return ", ".join(sorted({one.basis for one in declared if set(one.ranks) <= set(ranks) and one.basis}))


def _whole_models(across: Across) -> list[tuple[int, ...]]:
    """Returns ranks with equal parameters throughout; those filled with one value tell nothing and are left out."""
    fills = {relation.name for relation in across.replicas.relations if relation.undeclared_fills}
    models: dict[frozenset[tuple[str, int]], list[int]] = {}
    for rank, head in across.replicas.heads.items():
        names = [name for group, name in head.holdings if group == PARAMETER and name not in fills]
        model = frozenset((name, across.replicas.set_of(rank, PARAMETER, name)) for name in names)
        if model and all(number >= 0 for _, number in model):
            models.setdefault(model, []).append(rank)
    return [tuple(ranks) for ranks in models.values() if len(ranks) > 1]


def _batches(across: Across) -> Invariant:
    identity, words = "batches.across_ranks", BETWEEN_RANKS["batches.across_ranks"]
    sets = data_parallel(across)
    if not sets:
        return _open(identity, words, NOT_RELATED)
    compared, ranks = 0, set[int]()
    shared: list[tuple[tuple[int, int, int], tuple[int, ...]]] = []
    for key in across.inputs.batches:
        for one in sets:
            sides = across.inputs.batches.sides(key, among=bits_of(one.ranks))
            showed = {rank for side in sides for rank in side}
            compared += len(showed) > 1
            ranks |= showed if len(showed) > 1 else set()
            shared += [(key, side) for side in sides if len(side) > 1]
    if not compared:
        return _open(identity, words, "no batch was recorded on two data-parallel ranks")
    shared.sort()
    facts = [
        f"step {step} micro-batch {micro}: {ranks_told(side)} have the same batch"
        for (step, micro, _), side in shared[:NAMES_KEPT]
    ]
    facts.append(f"{compared:,} micro-batches; {compared_told(across.presence, sorted(ranks))}")
    facts += [f"data-parallel: {ranks_told(one.ranks)}, {one.basis}" for one in sets[:NAMES_KEPT]]
    steps = tuple(sorted({key[0] for key, _ in shared})[:NAMES_KEPT])
    evidence = Evidence(facts=tuple(facts), steps=steps, total=len(shared), ranks=tuple(sorted(ranks)))
    status = Outcome.FAIL if shared else Outcome.PASS
    return Invariant(identity, status, -1, steps[0] if steps else -1, words, evidence)


class _Judged(NamedTuple):
    """A generator at a step, over ranks whose roles a mesh tells. `wrong` is "" where it is as it must be."""

    step: int
    generator: str
    wrong: str


def _generators(across: Across) -> Invariant:
    identity, words = "replicas.rng", BETWEEN_RANKS["replicas.rng"]
    told = tuple(_states_told(across))
    if not told:
        return _open(identity, words, "no generator was recorded on two ranks")
    judged = sorted(_judged(across))
    wrong = [one for one in judged if one.wrong]
    facts = (*(f"{one.generator} at step {one.step}: {one.wrong}" for one in wrong[:NAMES_KEPT]), *told)
    if not judged:
        several = len({step for _, step in across.inputs.generators}) > 1
        drawn = across.inputs.advanced or across.inputs.drawn
        status = Outcome.NOT_CHECKABLE if drawn or not several else Outcome.NOT_APPLICABLE
        reason = ROLES_UNKNOWN if drawn else NOT_DRAWN if several else "one boundary shows no generator advance"
        return _open(identity, words, reason, facts=facts, status=status)
    evidence = Evidence(
        facts=facts,
        names=tuple(dict.fromkeys(one.generator for one in wrong[:NAMES_KEPT])),
        steps=tuple(dict.fromkeys(one.step for one in wrong[:NAMES_KEPT])),
        total=len(wrong),
        ranks=across.presence.ranks,
    )
    status = Outcome.FAIL if wrong else Outcome.PASS
    return Invariant(identity, status, -1, wrong[0].step if wrong else -1, words, evidence)


def _states_told(across: Across) -> Iterator[str]:
    """Yields, for each generator, which ranks start from the same state (A-17)."""
    first: dict[str, int] = {}
    for name, step in across.inputs.generators:
        first[name] = min(step, first.get(name, step))
    for name, step in sorted(first.items()):
        sides = across.inputs.generators.sides((name, step), among=bits_of(across.presence.ranks))
        if sum(map(len, sides)) > 1:
            yield f"{name} at step {step}: {sides_told(sides)}"


def _judged(across: Across) -> Iterator[_Judged]:
    heads = across.replicas.heads
    tensor = sets_along(heads, TENSOR_PARALLEL)
    data = [one for one in sets_along(heads, DATA_PARALLEL) if MEGATRON not in one.basis]
    for name, step in across.inputs.generators:
        drawn = across.inputs.drawn.get((name, step), 0)
        own = name.partition(":")[0] in OWN_GENERATORS
        for one in tensor:
            if own and drawn & bits_of(one.ranks):
                yield from _must_agree(across, name, step, one)
            elif name.endswith(MODEL_PARALLEL):
                yield from _must_differ(across, name, step, one)
        for one in data if own else ():
            if (drawn & bits_of(one.ranks)).bit_count() > 1:
                yield from _must_differ(across, name, step, one)


def _must_agree(across: Across, name: str, step: int, one: RankSet) -> Iterator[_Judged]:
    """Judges ranks whose first drawing call read the same bits: what they draw is replicated."""
    for alike in across.inputs.acted_on.sides((name, step), among=bits_of(one.ranks)):
        sides = across.inputs.generators.sides((name, step), among=bits_of(alike))
        if sum(map(len, sides)) > 1:
            wrong = f"{sides_told(sides)}, while they draw for the same tensors along {one.basis}"
            yield _Judged(step, name, wrong if len(sides) > 1 else "")


def _must_differ(across: Across, name: str, step: int, one: RankSet) -> Iterator[_Judged]:
    sides = across.inputs.generators.sides((name, step), among=bits_of(one.ranks))
    if sum(map(len, sides)) > 1:
        same = [side for side in sides if len(side) > 1]
        wrong = f"{sides_told(sides)}, where each must draw its own along {one.basis}" if same else ""
        yield _Judged(step, name, wrong)


def _open(
    identity: str,
    words: str,
    reason: str,
    *,
    facts: tuple[str, ...] = (),
    status: Outcome = Outcome.NOT_CHECKABLE,
) -> Invariant:
    return Invariant(identity, status, -1, -1, words, Evidence(facts=facts, reason=reason))
