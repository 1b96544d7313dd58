"""Invariants of what replicas share: parameters, buffers, gradients, optimizer state (CP-25): pure rules."""

from collections import Counter
from collections.abc import Iterator, Sequence

from paritrace.compare.checks_across import Across
from paritrace.compare.checks_replicas import Relation
from paritrace.compare.checks_result import Evidence, Invariant, Outcome, Parting
from paritrace.compare.checks_rules_parameters import NAMES_KEPT
from paritrace.compare.checks_rules_presence import compared_told
from paritrace.compare.checks_states import Series, ranks_of
from paritrace.compare.checks_telling import ranks_told, sides_told
from paritrace.compare.state_groups import BUFFER, GRADIENT, OPTIMIZER_STATE, PARAMETER

WORDS = {
    PARAMETER: ("replicas.parameters", "parameters are equal on all replicas"),
    OPTIMIZER_STATE: ("replicas.optimizer_state", "optimizer state is equal on all replicas"),
    GRADIENT: ("replicas.gradients", "gradients of replicas are equal once reduced"),
    BUFFER: ("replicas.buffers", "buffers are equal on all replicas"),
}
DECLARED = ("replicas.declared", "parameters on several ranks are known for what they are")
LOCAL_BUFFERS = "buffers part between ranks; running statistics may, until a wrapper sends them around"
MOMENTS = {"begin": "before the step", "grads": "before the optimizer"}


def replica_invariants(across: Across, /) -> Iterator[Invariant]:
    """Yields the invariants of what replicas share, of the ranks that are there."""
    partings = across.states.partings()
    boundaries = across.states.boundaries()
    for what in WORDS:
        parted = [parting for parting in partings if parting.what == what]
        yield _shared(across, what, parted=parted, boundaries=boundaries.get(what, 0))
    yield _declared(across)


def _shared(across: Across, what: str, *, parted: Sequence[Parting], boundaries: int) -> Invariant:
    identity, words = WORDS[what]
    series = across.states.compared(what)
    if not series:
        return _without_series(across, what)
    evidence = Evidence(
        facts=tuple(_facts(across, series, parted, what=what, boundaries=boundaries)),
        names=tuple(parting.name for parting in parted[:NAMES_KEPT]),
        steps=tuple(sorted({parting.step for parting in parted[:NAMES_KEPT]})),
        total=len(parted),
        ranks=_ranks(across, series),
        partings=tuple(parted[:NAMES_KEPT]),
        reason=LOCAL_BUFFERS if parted and what == BUFFER else "",
    )
    status = Outcome.PASS if not parted else Outcome.NOT_CHECKABLE if what == BUFFER else Outcome.FAIL
    return Invariant(identity, status, -1, parted[0].step if parted else -1, words, evidence)


def _ranks(across: Across, series: Sequence[Series]) -> tuple[int, ...]:
    bits = 0
    for one in series:
        bits |= across.states.ranks[one]
    return tuple(ranks_of(bits))


def _facts(
    across: Across, series: Sequence[Series], parted: Sequence[Parting], *, what: str, boundaries: int
) -> Iterator[str]:
    for parting in parted[:NAMES_KEPT]:
        yield f"{parting.name}: {sides_told(parting.sides)}, from step {parting.step} {MOMENTS[parting.moment]}"
        left_out = across.replicas.left_out.get(parting.name)
        if left_out is not None and what in (PARAMETER, GRADIENT):
            yield f"{parting.name} was left out of the reduction by its wrapper ({left_out})"
    names = {one.name for one in series}
    yield f"{len(names):,} names at {boundaries:,} boundaries; {compared_told(across.presence, _ranks(across, series))}"
    bases = Counter(across.replicas.sets[one.replica_set].basis for one in series)
    for basis, number in sorted(bases.items()):
        yield f"known as replicas: {number:,} by {basis}"
    unread = [one.name for one in series if one in across.states.unread]
    if unread:
        yield f"not read at some boundary: {', '.join(sorted(unread)[:NAMES_KEPT])}"


def _without_series(across: Across, what: str) -> Invariant:
    """Returns why nothing was compared: nothing lies on two ranks, nothing is known of it, or nothing was recorded."""
    identity, words = WORDS[what]
    group = BUFFER if what == BUFFER else PARAMETER
    relations = [relation for relation in across.replicas.relations if relation.group == group]
    if not relations:
        reason = f"no {group} was recorded on two ranks under one name"
        return Invariant(identity, Outcome.NOT_APPLICABLE, -1, -1, words, Evidence(reason=reason))
    if any(relation.sets for relation in relations):
        reason = f"no {what.replace('_', ' ')} of a replica was recorded on two ranks"
    else:
        reason = f"no {group} is known to be alike on two ranks ({_relations_told(relations)})"
    return Invariant(identity, Outcome.NOT_CHECKABLE, -1, -1, words, Evidence(reason=reason))


def _relations_told(relations: Sequence[Relation]) -> str:
    unlike = sum(bool(relation.unlike) for relation in relations)
    fills = sum(bool(relation.undeclared_fills) for relation in relations)
    return f"{len(relations):,} names on several ranks: {unlike:,} start unlike, {fills:,} are filled with one value"


def _declared(across: Across) -> Invariant:
    identity, words = DECLARED
    relations = [relation for relation in across.replicas.relations if relation.group == PARAMETER]
    open_ones = [relation for relation in relations if relation.unlike or relation.undeclared_fills]
    if not relations:
        reason = "no parameter was recorded on two ranks under one name"
        return Invariant(identity, Outcome.NOT_APPLICABLE, -1, -1, words, Evidence(reason=reason))
    names = tuple(relation.name for relation in open_ones[:NAMES_KEPT])
    evidence = Evidence(
        facts=tuple(_relation_told(relation) for relation in open_ones[:NAMES_KEPT]),
        names=names,
        total=len(open_ones),
        ranks=across.presence.ranks,
        reason=_open_told(open_ones) if open_ones else "",
    )
    return Invariant(identity, Outcome.NOT_CHECKABLE if open_ones else Outcome.PASS, -1, -1, words, evidence)


def _open_told(relations: Sequence[Relation]) -> str:
    fills = sum(bool(relation.undeclared_fills) for relation in relations)
    unlike = sum(bool(relation.unlike) for relation in relations)
    told = [f"{unlike:,} start unlike"] if unlike else []
    told += [f"{fills:,} are filled with one value"] if fills else []
    return f"nothing declares {len(relations):,} parameters replicas or shards: {', '.join(told)}"


def _relation_told(relation: Relation) -> str:
    if relation.unlike:
        return f"{relation.name}: starts unlike on {ranks_told(relation.unlike)}"
    return f"{relation.name}: filled with one value on {ranks_told(relation.undeclared_fills)}"
