"""Which gradients each side reduced, parameter by parameter, however they were bucketed (CP-2a)."""

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from paritrace.compare.collective_evidence import is_whole, steps_with_operators
from paritrace.compare.collective_held import Unsaid, held_by_step
from paritrace.compare.collective_words import (
    SIDES,
    FoundCollective,
    difference_at,
    moment_of,
    sides_of,
    told_collective,
    told_names,
    with_steps,
)
from paritrace.compare.ranks import RankComparison
from paritrace.compare.result import CollectiveDifference, CollectiveKind


class Unequal(NamedTuple):
    """Parameters whose gradients the same collectives hold, another number on each side."""

    step: int
    parameters: tuple[str, ...]
    holders: tuple[tuple[int, ...], tuple[int, ...]]


def reductions(of: RankComparison) -> list[FoundCollective]:
    """The gradients that one side alone reduces, or another number of times: each set once, at its first step."""
    found: dict[tuple[object, ...], FoundCollective] = {}
    for unequal in _unequal(of):
        told = _found(of, unequal)
        key = (unequal.parameters, *(len(holders) for holders in unequal.holders), told.told.group)
        if key in found:
            found[key] = with_steps(found[key], (unequal.step,))._replace(
                pairs=found[key].pairs | told.pairs, places=found[key].places | told.places
            )
        else:
            found[key] = told
    return list(found.values())


def _unequal(of: RankComparison) -> Iterator[Unequal]:
    held, unsaid = (held_by_step(of, 0), held_by_step(of, 1)), Unsaid(of)
    for step in sorted(steps_with_operators(of) & (held[0].keys() | held[1].keys())):
        ours, theirs = held[0].get(step, {}), held[1].get(step, {})
        groups: dict[tuple[tuple[int, ...], tuple[int, ...]], list[str]] = defaultdict(list)
        for name in {**ours, **theirs}:
            left, right = tuple(ours.get(name, ())), tuple(theirs.get(name, ()))
            if len(left) != len(right):
                groups[left, right].append(name)
        for holders, names in groups.items():
            unequal = Unequal(step, tuple(sorted(names)), holders)
            if not _may_be_held(of, unequal, unsaid):
                yield unequal


def _may_be_held(of: RankComparison, unequal: Unequal, unsaid: Unsaid) -> bool:
    """Whether the side that reduces less may hold the gradients in a collective that does not say so."""
    number = _more(unequal)
    group = sides_of(of)[number].collectives[unequal.holders[number][-1]].group
    return unsaid.may_hold(1 - number, unequal.parameters, step=unequal.step, group=group)


def _found(of: RankComparison, unequal: Unequal) -> FoundCollective:
    ours, theirs = unequal.holders
    number = _more(unequal)
    shown = unequal.holders[number][-1]
    side = sides_of(of)[number]
    partner = (of.sides.pairing.partner_a, of.sides.pairing.partner_b)[number][shown]  # the bucket without it
    places = (ours[-1] if ours else partner, theirs[-1] if theirs else partner)
    whole = is_whole(of)
    sentence = _sentence(of, unequal, whole=whole)
    records = [s.calls[at].id if at >= 0 else -1 for s, at in zip(sides_of(of), places, strict=True)]
    return FoundCollective(
        moment=moment_of(of, number, shown),
        told=CollectiveDifference(
            kind=CollectiveKind.REDUCED,
            sentence=sentence,
            ranks=(of.rank,),
            steps=(unequal.step,),
            phase=side.context_of(shown)[2],
            group=side.collectives[shown].group,
            operation=side.collectives[shown].operation,
            parameters=unequal.parameters,
            baseline=told_collective(of.sides.baseline, places[0]) if places[0] >= 0 else "",
            candidate=told_collective(of.sides.candidate, places[1]) if places[1] >= 0 else "",
            records=((of.rank, records[0], records[1]),),
            complete=whole,
        ),
        difference=difference_at(
            of,
            places,
            sentence=sentence,
            cause=_cause(of, unequal),
            slot=f"gradient of {told_names(unequal.parameters)}",
        ),
        pairs=frozenset(_pairs(of, unequal)),
        places=frozenset(_places(of, unequal)),
        calls=frozenset(_unpaired(of, unequal)),
    )


def _sentence(of: RankComparison, unequal: Unequal, *, whole: bool) -> str:
    names = told_names(unequal.parameters)
    number = _more(unequal)
    more, fewer = SIDES[number], SIDES[1 - number]
    facts = sides_of(of)[number].collectives[unequal.holders[number][-1]]
    what = f"{facts.operation} of group {facts.group}"
    if not whole:
        return f"Recorded on the {more} only: {what} with the gradient of {names} at step {unequal.step}"
    if not unequal.holders[1 - number]:
        return f"In the {fewer} no {what} contains the gradient of {names} at step {unequal.step}"
    times = [_times(len(unequal.holders[side])) for side in (number, 1 - number)]
    return (
        f"The {more} reduces the gradient of {names} {times[0]}, the {fewer} {times[1]}, in group {facts.group} at step"
        f" {unequal.step}"
    )


def _more(unequal: Unequal) -> int:
    """The side that reduces more often."""
    return 0 if len(unequal.holders[0]) > len(unequal.holders[1]) else 1


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


def _cause(of: RankComparison, unequal: Unequal) -> str:
    """The collective that holds them on the side that reduces more, and what a wrapper was told on the other."""
    number = _more(unequal)
    facts = sides_of(of)[number].collectives[unequal.holders[number][-1]]
    there = f"in the {SIDES[number]}: {facts.operation} #{facts.ordinal} of {told_names(facts.parameters)}"
    for replicated in sides_of(of)[1 - number].recorded.distributed.replicated:
        if set(unequal.parameters) <= set(replicated.left_out):
            return f"{replicated.basis} was told to leave it out in the {SIDES[1 - number]}; {there}"
    return there


def _pairs(of: RankComparison, unequal: Unequal) -> Iterator[int]:
    """The pairs that differ because of it: buckets that hold it on one side."""
    ours, theirs = unequal.holders
    for i in ours:
        if of.sides.pairing.partner_a[i] >= 0:
            yield i
    for j in theirs:
        if of.sides.pairing.partner_b[j] >= 0:
            yield of.sides.pairing.partner_b[j]


def _unpaired(of: RankComparison, unequal: Unequal) -> Iterator[tuple[int, int]]:
    partners = (of.sides.pairing.partner_a, of.sides.pairing.partner_b)
    for number, holders in enumerate(unequal.holders):
        yield from ((number, i) for i in holders if partners[number][i] < 0)


def _places(of: RankComparison, unequal: Unequal) -> Iterator[int]:
    for belongs, holders in zip((of.stretches.of_a, of.stretches.of_b), unequal.holders, strict=True):
        yield from (belongs[i] for i in holders if belongs[i] >= 0)
