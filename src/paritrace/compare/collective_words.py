"""Collectives in words, and a statement about them as the place where two runs part (CP-2a, CP-29)."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from paritrace.compare.collective_fields import told_ranks
from paritrace.compare.flows import FromCall, FromOrigin, source_of
from paritrace.compare.outside import Moment
from paritrace.compare.ranks import RankComparison
from paritrace.compare.result import CollectiveDifference, Difference, DifferenceClass, Group, SlotDifference
from paritrace.compare.sites import place_of
from paritrace.compare.translate import Side
from paritrace.evidence.calls import OriginKind

SIDES = ("baseline", "candidate")
NAMES_TOLD = 3
MAX_NAME = 48  # characters of a parameter in a sentence: two lines of the screen hold it and what is said of it


class FoundCollective(NamedTuple):
    """A statement about one rank: where it stands, and which pairs and stretches it speaks for."""

    moment: Moment
    told: CollectiveDifference
    difference: Difference
    pairs: frozenset[int] = frozenset()  # by the baseline's index
    places: frozenset[int] = frozenset()  # stretches
    calls: frozenset[tuple[int, int]] = frozenset()  # unpaired collectives: side and index


def sides_of(of: RankComparison) -> tuple[Side, Side]:
    """Both sides, the baseline first."""
    return of.sides.baseline, of.sides.candidate


def told_names(names: Sequence[str]) -> str:
    """A few names, long ones by their ends, and how many more there are."""
    shown = ", ".join(_short(name) for name in names[:NAMES_TOLD])
    return shown if len(names) <= NAMES_TOLD else f"{shown} and {len(names) - NAMES_TOLD} more"


def _short(name: str) -> str:
    return name if len(name) <= MAX_NAME else f"{name[: MAX_NAME // 3]}…{name[-MAX_NAME // 2 :]}"


def told_collective(side: Side, i: int) -> str:
    """A collective by its operation, its number in its group, and what it holds."""
    facts = side.collectives[i]
    held = told_names(facts.parameters) or subject(side, i)
    of = f" of {held}" if held else ""
    reduce = f" {facts.reduce}" if facts.reduce else ""
    return f"{facts.operation}{reduce} #{facts.ordinal}{of} over ranks {told_ranks(facts.ranks)}"


def subject(side: Side, i: int) -> str:
    """Whose tensor goes in, where the record names it: a gradient, a parameter; "" where it does not."""
    for slot in side.calls[i].inputs[:1]:
        source = source_of(side, slot)
        if isinstance(source, FromOrigin) and source.name:
            kind = source.kind.value.replace("_", " ")
            return f"gradient of {source.name}" if source.kind is OriginKind.GRADIENT else f"{kind} {source.name}"
        if isinstance(source, FromCall) and source.call in side.collectives:
            return subject(side, source.call)  # what an earlier collective gave back
        if isinstance(source, FromCall) and side.records.labels[source.call]:
            return f"gradient of {side.records.labels[source.call]}"
    return ""


def site_of(side: Side, i: int) -> str:
    """FILE:LINE of a call without the folders, "" where none is known."""
    return place_of(side.recorded.sites[side.calls[i].site]).rpartition("/")[2]


def moment_of(of: RankComparison, number: int, i: int) -> Moment:
    """Where a call of either side stands in the baseline's order: one of the candidate's behind the pair before it."""
    side = sides_of(of)[number]
    step, microbatch, _ = side.context_of(i)
    if number == 0:
        return Moment(step, side.calls[i].left, 0, microbatch)
    partners = of.sides.pairing.partner_b
    before = next((partners[j] for j in range(i, -1, -1) if partners[j] >= 0), -1)
    return Moment(step, of.sides.baseline.calls[before].left if before >= 0 else -1, 1, microbatch)


def difference_at(
    of: RankComparison, places: tuple[int, int], *, sentence: str, cause: str = "", slot: str = ""
) -> Difference:
    """A statement about collectives as a place; `places` are indices by side, -1 where a side has no such call."""
    ours, theirs = sides_of(of)
    side, i = (ours, places[0]) if places[0] >= 0 else (theirs, places[1])
    step, microbatch, phase = side.context_of(i)
    both = zip((ours, theirs), places, strict=True)
    sites = [s.recorded.sites[s.calls[at].site] if at >= 0 else None for s, at in both]
    site = side.recorded.sites[side.calls[i].site]
    told = (
        told_collective(ours, places[0]) if places[0] >= 0 else "none",
        told_collective(theirs, places[1]) if places[1] >= 0 else "none",
    )
    return Difference(
        rank=of.rank,
        step=step,
        microbatch=microbatch,
        phase=phase,
        level=side.level_of(i).value,
        function=side.recorded.functions[side.calls[i].function].name,
        file=site.file,
        line=site.line,
        module=side.module_of(i),
        slot=slot,
        difference_class=DifferenceClass.SCALARS,
        group=Group.ORIGINATES,
        baseline_record_id=ours.calls[places[0]].id if places[0] >= 0 else -1,
        candidate_record_id=theirs.calls[places[1]].id if places[1] >= 0 else -1,
        undetermined_before=_undetermined_before(of, places),
        baseline_site=place_of(sites[0]) if sites[0] is not None else "",
        candidate_site=place_of(sites[1]) if sites[1] is not None else "",
        baseline_source=of.lines.text(sites[0], side=0) if sites[0] is not None else "",
        candidate_source=of.lines.text(sites[1], side=1) if sites[1] is not None else "",
        slots=(SlotDifference(slot, DifferenceClass.SCALARS, told[0], told[1]),),
        cause=cause,
        collective=sentence,
    )


def _undetermined_before(of: RankComparison, places: tuple[int, int]) -> int:
    """The unpaired calls of both sides before it; where a side has no such call, before the pair before it."""
    partners = (of.sides.pairing.partner_a, of.sides.pairing.partner_b)
    known = 0 if places[0] >= 0 else 1
    before = next((partners[known][i] for i in range(places[known], -1, -1) if partners[known][i] >= 0), -1)
    ends = [place if place >= 0 else before + 1 for place in places]
    return sum(bisect_left(unpaired, end) for unpaired, end in zip(of.unpaired, ends, strict=True))


def with_steps(found: FoundCollective, steps: Sequence[int]) -> FoundCollective:
    """The same statement, with all the steps at which it holds."""
    return found._replace(told=replace(found.told, steps=tuple(sorted({*found.told.steps, *steps}))))
