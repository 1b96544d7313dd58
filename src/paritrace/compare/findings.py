"""From statements to findings: the first difference, the origins in order, sentences told once for all ranks
(CP-8, CP-9, CP-29)."""

import math
from collections.abc import Hashable, Mapping, Sequence

from msgspec.structs import replace

from paritrace.compare.describe import AROUND
from paritrace.compare.placing import MAX_ORIGINS, NAMED, Placed
from paritrace.compare.result import Difference, DifferenceClass, Finding, Group, SlotDifference
from paritrace.evidence.calls import Level

STRENGTH = "bits only"
RECORDED = "collectives recorded on both sides, each rank to its end"
COUNTED = "the groups' own counts of their collectives"
ORDER_ALONE = "order alone: paired collectives and what they give are judged each for itself"
MAX_FINDINGS = 10
RANKS_TOLD = 2  # whose causes are told where they differ; all of them stand in `collectives`
MAX_MODULE = 60  # characters of a module's path in a sentence: two lines of the screen hold it and what is said


def first_of(ranks: Sequence[list[Placed]]) -> Difference | None:
    """The first difference over all ranks; of equal moments the lowest rank's."""
    firsts = [items[0] for items in ranks if items]
    first = min(firsts, key=lambda item: (item.moment.step, item.difference.rank), default=None)
    return None if first is None else first.difference


def origins_of(ranks: Sequence[list[Placed]]) -> tuple[Difference, ...]:
    """What differences go back to, per rank in order of execution."""
    return tuple(item.difference for items in ranks for item in items[:MAX_ORIGINS] if item.difference.group in NAMED)


def firsts_of(ranks: Sequence[list[Placed]], follows: Sequence[list[Placed]]) -> tuple[Difference, ...]:
    """The first difference of each rank in its own order of execution; ranks where nothing differs have none.

    `follows`: what each rank shows that goes back to another rank.
    """
    every = ([*items, *others] for items, others in zip(ranks, follows, strict=True))
    return tuple(min(items, key=lambda item: item.moment).difference for items in every if items)


def findings(
    ranks: Sequence[list[Placed]], *, exits: Sequence[list[Placed]] = (), extra: Sequence[list[Placed]] = ()
) -> tuple[Finding, ...]:
    """The first difference and the other origins, one sentence each, told once for all ranks, at most ten.

    Between ranks there is no order of execution: of one step those come first that are early on their own rank. What a
    group's collectives do not do alike comes before all else of its step: it is a fact of its own, whatever other bits
    flow in. `exits` leave the envelope and come before everything that differs in bits, but for what no round-off makes
    at an earlier step, and for what leads to something that is out and no exit explains; `extra` are facts that no bits
    show, such as another order: they come last.
    """
    beyond, others = _ordered(exits, first=False), _facts_first(_ordered(ranks, first=True))
    first = beyond[0].moment.step if beyond else 0
    before = [item for item in others if item.leads or (item.exact and item.moment.step < first)]
    behind = [item for item in others if not (item.leads or (item.exact and item.moment.step < first))]
    told = _folded([*before, *beyond, *behind, *_ordered(extra, first=False)])
    return tuple(_finding(number, items) for number, items in enumerate(told[:MAX_FINDINGS], 1))


def _facts_first(items: Sequence[Placed]) -> list[Placed]:
    """What is a fact whatever the bits are stands before other code that stays inside; else the order stays."""
    if not items or items[0].excess is None or items[0].excess.beyond:
        return list(items)
    return sorted(items, key=lambda item: not _is_fact(item))


def _is_fact(item: Placed) -> bool:
    """Other arguments, another wiring, another state before any call, other whole numbers: no round-off makes it."""
    inside = not item.exact and item.excess is not None and not item.excess.beyond
    scalars = any(slot.difference_class is DifferenceClass.SCALARS for slot in item.difference.slots)
    return not inside and (
        item.exact or item.leads or scalars or item.difference.group in (Group.OUTSIDE, Group.REWIRED)
    )


def _ordered(ranks: Sequence[list[Placed]], *, first: bool) -> list[Placed]:
    ordered = sorted(
        (item.moment.step, not item.difference.collective, place, item.difference.rank, number)
        for number, items in enumerate(ranks)
        for place, item in enumerate(items)
    )
    found = [ranks[number][place] for *_, place, _, number in ordered if not ranks[number][place].told]
    if not first:
        return found
    return [item for item in found if _is_named(item.difference) or item is found[0]]


def _is_named(place: Difference) -> bool:
    return place.group in NAMED or bool(place.collective)


def _folded(items: Sequence[Placed]) -> list[list[Placed]]:
    """Equal statements of several ranks together, in the order of the first of each."""
    found: dict[Hashable, list[Placed]] = {}
    for item in items:
        found.setdefault(_statement(item.difference), []).append(item)
    return list(found.values())


def _statement(place: Difference) -> Hashable:
    """What is said of a place but its rank and what differs from rank to rank with it: record ids and sizes."""
    if place.collective:
        return place.collective
    where = (place.step, place.microbatch, place.phase, place.module, place.baseline_site, place.candidate_site)
    what = (place.level, place.function, place.group, place.region, place.region_calls, place.slot)
    return (*where, *what, place.difference_class, place.cause)


def _finding(number: int, items: Sequence[Placed]) -> Finding:
    place = items[0].difference
    worst = max(items, key=lambda item: 0.0 if item.excess is None else item.excess.ratio)
    excess = worst.excess
    sizes = [_measured(item.difference) for item in items] if excess is None else [_finite(excess.error)]
    ranks = tuple(sorted({item.difference.rank for item in items}))
    return Finding(
        id=f"F{number}",
        sentence=sentence(place, ranks=ranks, causes={i.difference.rank: i.difference.cause for i in items}),
        strength=worst.strength or _strength(place),
        place=replace(place),
        measured=max((size for size in sizes if size is not None), default=None),
        consequences=sum(item.consequences for item in items),
        ranks=ranks,
        expected=None if excess is None else excess.expected,
        ratio=None if excess is None else _finite(excess.ratio),
        reached=None if excess is None else excess.reached,
        figure="" if excess is None else excess.figure,
        bias=None if excess is None or excess.figure == "gain" else excess.bias,
        bias_reached=None if excess is None or excess.figure == "gain" else excess.bias_reached,
        input_error=None if worst.gain is None else worst.gain.came_in,
        gain=None if worst.gain is None else _finite(worst.gain.gain),
        usual_gain=None if worst.gain is None else worst.gain.expected,
    )


def _finite(figure: float | None) -> float | None:
    """A figure as the document holds it, which knows no infinity: what became not finite has no size."""
    return figure if figure is not None and math.isfinite(figure) else None


def _measured(place: Difference) -> float | None:
    return next((slot.relative_error for slot in _own(place) if slot.relative_error is not None), None)


def _strength(place: Difference) -> str:
    if not place.collective:
        return STRENGTH
    return COUNTED if place.level == "digest" else RECORDED


def told_ranks(ranks: Sequence[int]) -> str:
    """`rank 0`, or `ranks 0, 1` of a statement that holds on several."""
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(str(rank) for rank in ranks)}"


def sentence(place: Difference, *, ranks: Sequence[int] = (), causes: Mapping[int, str] | None = None) -> str:
    """Say in one sentence where the runs part, on which ranks, and what kind of statement that is.

    `causes` gives that of each rank, where they are not the same.
    """
    on = told_ranks(ranks or (place.rank,))
    if place.collective:
        cause = _causes(causes or {place.rank: place.cause})
        return f"{place.collective}, {on}{f' ({cause})' if cause else ''}."
    where = f"step {place.step}, {place.phase}"
    module = f" in {_short(place.module)}" if place.module else ""
    site = place.baseline_site or place.candidate_site
    at = f" at {_file_of(site)}" if site else ""
    scalars = next((slot for slot in place.slots if slot.difference_class is DifferenceClass.SCALARS), None)
    match place.group:
        case Group.EXCEEDS | Group.WITHIN | Group.CHOOSES:
            return _judged(place, f"{where} ({on})", at=at)
        case Group.OUTSIDE:
            return f"The runs differ in what the calls read: {place.cause} ({on}, {where})."
        case Group.REWIRED:
            return f"{place.function}{module}{at} reads another source at {where} ({on}): {place.cause}."
        case Group.ORIGINATES if place.region:
            return f"The runs part at {where}{module} ({on}): {_region(place)}."
        case Group.ORIGINATES if scalars is not None:
            return (
                f"The runs part at {where}{module} ({on}): {place.function}{at} is called with"
                f" {scalars.candidate} instead of {scalars.baseline}."
            )
        case Group.ORIGINATES:
            return (
                f"The runs part at {where}{module} ({on}): {place.function}{at} gets equal inputs and"
                f" gives other outputs{_size(place)}."
            )
        case Group.AFTER_UNALIGNED:
            cause = place.cause or "they made what is read here"
            return f"The runs part at {where}{module} ({on}), after calls without a counterpart: {cause}."
        case _ if place.level == "digest":
            return f"The runs part at {where} ({on}): {_figure(place)} differs, and no recorded call shows where."
        case _:
            return (
                f"The first differing call is {place.function}{at} at {where}{module} ({on}); where the"
                f" difference comes from is not determined{': ' + place.cause if place.cause else ''}."
            )


def _causes(causes: Mapping[int, str]) -> str:
    """What all ranks share, or that of each of the first two ranks."""
    if len(set(causes.values())) == 1:
        return next(iter(causes.values()))
    told = [f"rank {rank}: {cause}" for rank, cause in sorted(causes.items())[:RANKS_TOLD]]
    more = len(causes) - RANKS_TOLD
    return "; ".join(told) + (f"; {more} more" if more > 0 else "")


def _judged(place: Difference, where: str, *, at: str) -> str:
    """A statement that an envelope makes, whatever the bits are."""
    if place.group is Group.CHOOSES:
        module = f" in {_short(place.module)}" if place.module else ""
        return f"{_called(place)}{module}{at} makes another discrete choice at {where}."
    if place.group is Group.WITHIN:
        name = _short(place.module) or "the root module"
        return f"Other code in {name} at {where}, {place.cause}: adds no more than the envelope explains."
    if place.level == "digest":
        return f"{_figure(place)} leaves the envelope at {where}: {place.cause}."
    otherwise = f", {place.cause}" if place.cause else ""
    out = f"the output of {_called(place)}{at} does; what came in is inside{otherwise}"
    return f"{_short(place.module) or 'The root module'} leaves the envelope at {where}: {out}."


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


def _called(place: Difference) -> str:
    """An operator by its whole name, a module by its class."""
    return place.function if place.level == Level.OP else place.function.rpartition(".")[2]


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
