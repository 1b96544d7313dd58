"""Every statement of one rank that may stand first or be an origin, in its order of execution (CP-8)."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from paritrace.compare.blames import Blame, Root
from paritrace.compare.collective_words import FoundCollective
from paritrace.compare.describe import pair_difference, region_difference
from paritrace.compare.envelope import Excess
from paritrace.compare.figure_rows import DigestDifference
from paritrace.compare.flows import FromCall, source_of
from paritrace.compare.gains import Gain
from paritrace.compare.gradients_apart import STRENGTH, gradients_apart
from paritrace.compare.outside import (
    Moment,
    figure_difference,
    moment_of_call,
    moment_of_figure,
    stands_first,
    unexplained,
)
from paritrace.compare.ranks import RankComparison
from paritrace.compare.result import CollectiveKind, Difference, Group
from paritrace.compare.state_groups import GRADIENT, WEIGHTS
from paritrace.compare.telling import told_state

NAMED = frozenset({Group.ORIGINATES, Group.OUTSIDE, Group.REWIRED})
MAX_ORIGINS = 200  # more are consequences of each other's neighbourhood; the rows hold every call
UNDECIDED = frozenset({Group.UNDETERMINED, Group.AFTER_UNALIGNED})
BARRIER = "barrier"


class Placed(NamedTuple):
    """A difference with its place in the order of execution and what follows from it."""

    moment: Moment
    difference: Difference
    consequences: int
    root: Root | None = None  # the pair or stretch that it speaks of
    parameters: frozenset[str] = frozenset()  # whose calls it speaks of, of a stretch
    reads: frozenset[tuple[int, int]] = frozenset()  # side and index of what made the inputs of a stretch
    strength: str = ""  # how an envelope judges it; "" where none does
    excess: Excess | None = None
    gain: Gain | None = None  # of a call that an envelope judges: what came in, and what it added
    told: bool = False  # an exit before it tells it: no finding of its own
    alone: bool = False  # of a collective that one side alone runs: a fact, unless something differs behind it
    leads: bool = False  # what leaves the envelope behind it is no exit of its own: it comes before exits
    exact: bool = False  # of whole numbers alone, or of what is there or not: no round-off makes it


def placed(of: RankComparison, collectives: Sequence[FoundCollective]) -> list[Placed]:
    """Everything of one rank that may stand as first difference or origin, in order of execution.

    What follows from a statement about a collective is its consequence and does not stand beside it.
    """
    found = [*_figures(of), *_pairs(of), *_regions(of), *_gradients_apart(of)]
    said = [each for each in collectives if each.told.complete and not _changes_nothing(each)]
    counts = [0] * len(said)
    kept: list[Placed] = []
    for item in found:
        cause = next((n for n, each in enumerate(said) if _follows(item, each)), None)
        if cause is None:
            kept.append(item)
        else:
            counts[cause] += item.consequences + (not _is_own(item, said[cause]))
    kept += [
        Placed(each.moment, each.difference, count, alone=each.told.kind is CollectiveKind.ONE_SIDED)
        for each, count in zip(said, counts, strict=True)
    ]
    kept.sort(key=lambda item: item.moment)
    return kept


def _changes_nothing(each: FoundCollective) -> bool:
    """Whether it has no part in any value: another order, and a barrier, which carries no tensor of the workload."""
    return each.told.kind is CollectiveKind.ORDER or each.told.operation == BARRIER


def _follows(item: Placed, from_: FoundCollective) -> bool:
    """Whether a statement speaks of what a collective did: its own pair or stretch, its gradients, doubts behind it."""
    root, place = item.root, item.difference
    if _is_own(item, from_):
        return True
    if item.moment < from_.moment:
        return False
    names = set(from_.told.parameters)
    if place.level == "digest" and place.function in (GRADIENT, "grad_norm"):
        return not names or place.slot in names or place.function != GRADIENT
    if root is not None and root[0] == "region" and item.parameters and item.parameters <= names:
        return True
    if item.reads & from_.calls:
        return True
    return place.group in UNDECIDED


def _is_own(item: Placed, of: FoundCollective) -> bool:
    """Whether a statement speaks of the same pair or stretch."""
    return item.root is not None and item.root[1] in (of.pairs if item.root[0] == "call" else of.places)


def _figures(of: RankComparison) -> Iterator[Placed]:
    """The earliest unexplained figure, unless a call that reads it says so itself."""
    told = {
        (blame.outside.kind.value, blame.outside.name) for blame in of.origins.blames.single.values() if blame.outside
    }
    figures = unexplained(of)
    if any((figure.group, figure.name) in told for figure in figures) or not figures:
        return
    figure = next((figure for figure in figures if figure.group in WEIGHTS), figures[0])
    moment = Moment(figure.step, -1, 0, 0) if stands_first(of, figure) else moment_of_figure(figure)
    blame = of.origins.states.get(figure[:5]) or Blame(Group.OUTSIDE, told_state(of.digests, figure))
    reader = _reader_of(of, figure)
    if reader is None:
        yield Placed(moment, figure_difference(of, figure), len(of.origins.blames))
    else:
        yield Placed(moment, pair_difference(of, reader[0], blame._replace(slot=reader[1])), len(of.origins.blames) - 1)


def _gradients_apart(of: RankComparison) -> Iterator[Placed]:
    found = gradients_apart(of)
    if found is not None:
        figure, difference = found
        yield Placed(moment_of_figure(figure), difference, 0, strength=STRENGTH, exact=True)


def _reader_of(of: RankComparison, figure: DigestDifference) -> tuple[int, int] | None:
    """The first differing call, and which of its inputs, that reads a weight as its module's own."""
    if figure.group not in WEIGHTS:
        return None
    side = of.sides.baseline
    for i in of.origins.blames:
        for place in of.verdicts.verdicts[i].inputs:
            slot = side.recorded.names[side.calls[i].inputs[place].name]
            if f"{side.module_of(i)}.{slot}" == figure.name:
                return i, place
    return None


def _pairs(of: RankComparison) -> Iterator[Placed]:
    wanted = [i for i, blame in of.origins.blames.single.items() if blame.group in NAMED]
    undecided = [i for i, b in of.origins.blames.single.items() if b.group in UNDECIDED]
    for i in [*sorted(wanted)[:MAX_ORIGINS], *_first(of, undecided)]:
        root: Root = ("call", i)
        yield Placed(
            moment_of_call(of, i),
            pair_difference(of, i, of.origins.blames[i]),
            of.origins.consequences[root],
            root,
        )


def _first(of: RankComparison, items: Sequence[int]) -> list[int]:
    """The first of them in order of execution: one is enough to say that something could not be decided."""
    calls = of.sides.baseline.calls
    return sorted(items, key=calls.values("left").__getitem__)[:1]


def _regions(of: RankComparison) -> Iterator[Placed]:
    calls = of.sides.baseline.calls
    for place, shown_by in list(of.origins.regions.items())[:MAX_ORIGINS]:
        reader = shown_by if shown_by >= 0 else _reader(of, place)
        difference = region_difference(of, place, reader)
        stretch = of.stretches.found[place]
        last = stretch.a[-1] if stretch.a else stretch.after[0]
        at = calls[last].left if last >= 0 else -1
        moment = Moment(difference.step, at, 0, difference.microbatch)
        root: Root = ("region", place)
        count = of.origins.consequences[root]
        yield Placed(moment, difference, count, root, _labels(of, place), _reads(of, place))


def _labels(of: RankComparison, place: int) -> frozenset[str]:
    """The parameters whose accumulation a stretch is part of; empty unless all its calls are."""
    stretch = of.stretches.found[place]
    labels = [of.sides.baseline.records.labels[i] for i in stretch.a]
    labels += [of.sides.candidate.records.labels[j] for j in stretch.b]
    return frozenset(labels) if all(labels) else frozenset()


def _reads(of: RankComparison, place: int) -> frozenset[tuple[int, int]]:
    """The calls that made what a stretch reads, by side and index."""
    stretch = of.stretches.found[place]
    sides = ((of.sides.baseline, stretch.a), (of.sides.candidate, stretch.b))
    return frozenset(
        (number, source.call)
        for number, (side, items) in enumerate(sides)
        for i in items
        for slot in side.calls[i].inputs
        if isinstance(source := source_of(side, slot), FromCall)
    )


def _reader(of: RankComparison, place: int) -> int:
    """The first paired call whose difference goes back to this stretch."""
    calls = of.sides.baseline.calls
    readers = [i for i, blame in of.origins.blames.single.items() if blame.root == ("region", place)]
    return min(readers, key=calls.values("left").__getitem__, default=-1)
