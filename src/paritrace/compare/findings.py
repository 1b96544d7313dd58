"""From blames to statements: the first difference, the origins in order, findings in sentences (CP-8, CP-29, CP-30)."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from paritrace.compare.blames import Blame, Root
from paritrace.compare.describe import AROUND, pair_difference, region_difference
from paritrace.compare.digests import DigestDifference
from paritrace.compare.outside import (
    Moment,
    figure_difference,
    moment_of_call,
    moment_of_figure,
    stands_first,
    unexplained,
)
from paritrace.compare.ranks import RankComparison
from paritrace.compare.result import Difference, DifferenceClass, Finding, Group, SlotDifference
from paritrace.compare.telling import told_state

STRENGTH = "bits only"
NAMED = frozenset({Group.ORIGINATES, Group.OUTSIDE, Group.REWIRED})
MAX_ORIGINS = 200  # more are consequences of each other's neighbourhood; the rows hold every call
MAX_FINDINGS = 10
MAX_MODULE = 60  # characters of a module's path in a sentence: two lines of the screen hold it and what is said
WEIGHTS = frozenset({"parameter", "buffer"})


class Placed(NamedTuple):
    """A difference with its place in the order of execution and what follows from it."""

    moment: Moment
    difference: Difference
    consequences: int


def placed(of: RankComparison) -> list[Placed]:
    """Everything of one rank that may stand as first difference or origin, in order of execution."""
    found = [*_figures(of), *_pairs(of), *_regions(of)]
    found.sort(key=lambda item: item.moment)
    return found


def _figures(of: RankComparison) -> Iterator[Placed]:
    """The earliest unexplained figure, unless a call that reads it says so itself."""
    told = {(blame.outside.kind.value, blame.outside.name) for blame in of.origins.blames.values() if blame.outside}
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


def _reader_of(of: RankComparison, figure: DigestDifference) -> tuple[int, int] | None:
    """The first differing call, and which of its inputs, that reads a weight as its module's own."""
    if figure.group not in WEIGHTS:
        return None
    side = of.sides.baseline
    for i in sorted(of.origins.blames, key=lambda i: side.calls[i].left):
        for place in of.verdicts.verdicts[i].inputs:
            slot = side.recorded.names[side.calls[i].inputs[place].name]
            if f"{side.module_of(i)}.{slot}" == figure.name:
                return i, place
    return None


def _pairs(of: RankComparison) -> Iterator[Placed]:
    wanted = [i for i, blame in of.origins.blames.items() if blame.group in NAMED]
    undecided = [i for i, b in of.origins.blames.items() if b.group in (Group.UNDETERMINED, Group.AFTER_UNALIGNED)]
    for i in [*sorted(wanted)[:MAX_ORIGINS], *_first(of, undecided)]:
        root: Root = ("call", i)
        yield Placed(
            moment_of_call(of, i),
            pair_difference(of, i, of.origins.blames[i]),
            of.origins.consequences[root],
        )


def _first(of: RankComparison, items: Sequence[int]) -> list[int]:
    """The first of them in order of execution: one is enough to say that something could not be decided."""
    calls = of.sides.baseline.calls
    return sorted(items, key=lambda i: calls[i].left)[:1]


def _regions(of: RankComparison) -> Iterator[Placed]:
    calls = of.sides.baseline.calls
    for place, shown_by in list(of.origins.regions.items())[:MAX_ORIGINS]:
        reader = shown_by if shown_by >= 0 else _reader(of, place)
        difference = region_difference(of, place, reader)
        stretch = of.stretches.found[place]
        last = stretch.a[-1] if stretch.a else stretch.after[0]
        at = calls[last].left if last >= 0 else -1
        moment = Moment(difference.step, at, 0, difference.microbatch)
        yield Placed(moment, difference, of.origins.consequences["region", place])


def _reader(of: RankComparison, place: int) -> int:
    """The first paired call whose difference goes back to this stretch."""
    calls = of.sides.baseline.calls
    readers = [i for i, blame in of.origins.blames.items() if blame.root == ("region", place)]
    return min(readers, key=lambda i: calls[i].left, default=-1)


def first_of(ranks: Sequence[list[Placed]]) -> Difference | None:
    """The first difference over all ranks; of equal moments the lowest rank's."""
    firsts = [items[0] for items in ranks if items]
    first = min(firsts, key=lambda item: (item.moment.step, item.difference.rank), default=None)
    return None if first is None else first.difference


def origins_of(ranks: Sequence[list[Placed]]) -> tuple[Difference, ...]:
    """What differences go back to, per rank in order of execution."""
    return tuple(item.difference for items in ranks for item in items[:MAX_ORIGINS] if item.difference.group in NAMED)


def findings(ranks: Sequence[list[Placed]]) -> tuple[Finding, ...]:
    """The first difference and the other origins, one sentence each, at most ten."""
    ordered = sorted(
        (item for items in ranks for item in items),
        key=lambda item: (item.moment.step, item.difference.rank, item.moment),
    )
    named = [item for item in ordered if item.difference.group in NAMED or item is ordered[0]]
    return tuple(_finding(number, item) for number, item in enumerate(named[:MAX_FINDINGS], 1))


def _finding(number: int, item: Placed) -> Finding:
    place = item.difference
    measured = next((slot.relative_error for slot in _own(place) if slot.relative_error is not None), None)
    return Finding(
        id=f"F{number}",
        sentence=sentence(place),
        strength=STRENGTH,
        place=replace(place),
        measured=measured,
        consequences=item.consequences,
    )


def sentence(place: Difference) -> str:
    """Say in one sentence where the runs part and what kind of statement that is."""
    where = f"step {place.step}, {place.phase}"
    module = f" in {_short(place.module)}" if place.module else ""
    site = place.baseline_site or place.candidate_site
    at = f" at {_file_of(site)}" if site else ""
    scalars = next((slot for slot in place.slots if slot.difference_class is DifferenceClass.SCALARS), None)
    match place.group:
        case Group.OUTSIDE:
            return f"The runs differ in what the calls read: {place.cause} (rank {place.rank}, {where})."
        case Group.REWIRED:
            return f"{place.function}{module}{at} reads another source at {where} (rank {place.rank}): {place.cause}."
        case Group.ORIGINATES if place.region:
            return f"The runs part at {where}{module} (rank {place.rank}): {_region(place)}."
        case Group.ORIGINATES if scalars is not None:
            return (
                f"The runs part at {where}{module} (rank {place.rank}): {place.function}{at} is called with"
                f" {scalars.candidate} instead of {scalars.baseline}."
            )
        case Group.ORIGINATES:
            return (
                f"The runs part at {where}{module} (rank {place.rank}): {place.function}{at} gets equal inputs and"
                f" gives other outputs{_size(place)}."
            )
        case Group.AFTER_UNALIGNED:
            cause = place.cause or "they made what is read here"
            return f"The runs part at {where}{module} (rank {place.rank}), after calls without a counterpart: {cause}."
        case _ if place.level == "digest":
            return (
                f"The runs part at {where} (rank {place.rank}): {_figure(place)} differs, and no recorded call shows"
                " where."
            )
        case _:
            return (
                f"The first differing call is {place.function}{at} at {where}{module} (rank {place.rank}); where the"
                f" difference comes from is not determined{': ' + place.cause if place.cause else ''}."
            )


def _figure(place: Difference) -> str:
    """A figure of a step by its group and name: `gradient fc.weight`; a loss or a norm is its own group."""
    if place.slot == place.function:
        return place.slot
    return f"{place.function.replace('_', ' ')} {place.slot}"


def _region(place: Difference) -> str:
    ours, theirs = place.region_calls
    if not ours or not theirs:
        side, site = ("baseline", place.baseline_site) if ours else ("candidate", place.candidate_site)
        told = f"recorded on the {side} only at {_file_of(site)} ({place.function})"
        verb = "changes" if ours + theirs == 1 else "change"
        return f"{_calls(ours + theirs)} {told} {verb} what follows"
    sites = (_file_of(place.baseline_site), _file_of(place.candidate_site))
    return f"{_calls(ours)} at {sites[0]} against {theirs:,} at {sites[1]}, whose inputs agree"


def _calls(number: int) -> str:
    return f"{number:,} call" if number == 1 else f"{number:,} calls"


def _short(module: str) -> str:
    """A long path by its ends, so that a name cannot crowd out what is said of it; the whole stands in the place."""
    return module if len(module) <= MAX_MODULE else f"{module[: MAX_MODULE // 3]}…{module[-MAX_MODULE // 2 :]}"


def _file_of(site: str) -> str:
    """A site without the folders of its file: a sentence stays readable, the whole path stands beside it."""
    return site.rpartition("/")[2]


def _own(place: Difference) -> list[SlotDifference]:
    """The slots of the call itself; what the module around shows is no size of this call."""
    return [slot for slot in place.slots if slot.note != AROUND]


def _size(place: Difference) -> str:
    for slot in _own(place):
        if slot.difference_class is DifferenceClass.NON_FINITE_APPEARED:
            return f" ({slot.baseline} against {slot.candidate})"
        if slot.relative_error is not None:
            return f", by about {slot.relative_error:.1e}"
    return ""
