"""What was compared, and what was not seen and where (CP-9, CP-29)."""

from collections.abc import Iterator
from typing import NamedTuple

from paritrace.compare.result import Comparison, SideCoverage, UndeterminedPlace
from paritrace.evidence.spans import ranges
from paritrace.reports.harmless import shorten
from paritrace.reports.layout import CONTENT, Section, paragraph
from paritrace.reports.wording import count, listed, module_or_root
from paritrace.runs.attendance import in_words

PLACES_SHOWN = 3
NAMES_SHOWN = 4


def compared(comparison: Comparison, /) -> Section:
    """Returns the counts, with the ranks, steps and levels they speak of."""
    counts = comparison.counts
    scope = (
        f"rank {ranges(comparison.ranks_compared) or 'none'}, step {ranges(comparison.steps_compared) or 'none'}, "
        f"levels {', '.join(comparison.levels_compared) or 'none'}"
    )
    numbers = (
        f"{count(counts.paired, 'pair')} of {counts.calls_baseline:,} and {counts.calls_candidate:,} calls: "
        f"{counts.ok:,} agree, {counts.different:,} differ, {counts.incomparable:,} not comparable"
    )
    if counts.reordered:
        numbers += f"; {counts.reordered:,} in another order"
    return Section(anchor="counts", lines=(*paragraph(numbers, most=2), *paragraph(scope, most=2)), keep=2, spaced=True)


def not_seen(comparison: Comparison, /) -> Section:
    """Returns what the comparison cannot speak of, by place; says so when nothing is known to be missing."""
    lines = tuple(_not_seen(comparison))
    return Section(anchor="not_seen", lines=lines or ("nothing is known to be missing",), keep=2, most=8)


class Said(NamedTuple):
    """A statement in its whole length, and in how many lines a screen says it; 0: as it is."""

    text: str
    most: int = 0


def statements(comparison: Comparison) -> Iterator[str]:
    """Yields what the comparison cannot speak of in whole statements, without the places of undetermined calls."""
    yield from (said.text for said in _known_before(comparison))
    yield from _undetermined_in_all(comparison)
    yield from (said.text for said in _known_after(comparison))


def _not_seen(comparison: Comparison) -> Iterator[str]:
    yield from _fitted(_known_before(comparison))
    yield from _undetermined_in_all(comparison)
    yield from _undetermined_places(comparison)
    yield from _fitted(_known_after(comparison))


def _fitted(told: Iterator[Said]) -> Iterator[str]:
    for text, most in told:
        match most:
            case 0:
                yield text
            case 1:
                yield shorten(text, width=CONTENT)
            case _:
                yield from paragraph(text, most=most)


def _known_before(comparison: Comparison) -> Iterator[Said]:
    if missing := not_folded(comparison):
        yield Said(f"on one side only: rank {ranges(missing)}")
    yield from map(Said, idle_maps(comparison))
    for side, coverage in comparison.coverage.items():  # a run that was cut off explains the calls without partners
        yield from _attended(side, coverage)
        yield from _ended(side, coverage)
    yield from _steps_of_one_side(comparison)


def _known_after(comparison: Comparison) -> Iterator[Said]:
    for side, coverage in comparison.coverage.items():
        yield from (Said(f"{side}: {remark}", 2) for remark in coverage.remarks)
    for side, coverage in comparison.coverage.items():
        if coverage.expected_steps is None:
            yield Said(f"{side}: the number of steps was not declared (run --steps A:B), so completeness is unverified")
    yield from _not_captured(comparison)


def idle_maps(comparison: Comparison) -> Iterator[str]:
    """The declared maps that did nothing: they name nothing, or nothing that the other run has (CP-5)."""
    for declared in comparison.maps:
        if declared.names is None:
            yield f"--map {declared.rule}: that rank was not compared"
        elif not declared.names:
            yield f"--map {declared.rule}: no {declared.of} has this name"
        elif not declared.met:
            yield f"--map {declared.rule}: {count(declared.names, 'name')}, none of which the other run has"


def not_folded(comparison: Comparison) -> list[int]:
    """The ranks of one side only that no fold made part of the comparison: unlike layouts have unlike ranks."""
    folded = set() if comparison.folds is None else {rank for side in comparison.folds.ranks for rank in side}
    return [rank for rank in comparison.ranks_missing if rank not in folded]


def _steps_of_one_side(comparison: Comparison) -> Iterator[Said]:
    """Names the steps that one side alone went through on all of its ranks: the other ended earlier or began later."""
    seen = {side: set(coverage.steps_seen) for side, coverage in comparison.coverage.items()}
    for side, steps in seen.items():
        alone = steps.difference(*(others for other, others in seen.items() if other != side))
        if alone:
            yield Said(f"step {ranges(sorted(alone))}: of the {side} alone", 1)


def _attended(side: str, coverage: SideCoverage) -> Iterator[Said]:
    """Names the ranks that left no session or no receipt, and the sessions that have no partner."""
    for one in coverage.ranks:
        if one.num_expected > 1:
            yield from (Said(f"{side}: {words}", 1) for words in in_words(one))
    if coverage.not_compared:
        sessions = listed(coverage.not_compared, most=NAMES_SHOWN)
        yield Said(f"{side}: not compared, the other run has no such session: {sessions}", 1)


def _undetermined_in_all(comparison: Comparison) -> Iterator[str]:
    counts = comparison.counts
    if counts.undetermined_baseline or counts.undetermined_candidate:
        yield (
            f"undetermined: {counts.undetermined_baseline:,} of {counts.calls_baseline:,} baseline calls, "
            f"{counts.undetermined_candidate:,} of {counts.calls_candidate:,} candidate calls"
        )


def _undetermined_places(comparison: Comparison) -> Iterator[str]:
    places = sorted(comparison.undetermined_by_place, key=lambda place: (-place.count, place.step, place.module))
    yield from (_place(place) for place in places[:PLACES_SHOWN])
    if len(places) > PLACES_SHOWN:
        rest = sum(place.count for place in places[PLACES_SHOWN:])
        yield f"  {count(rest, 'call')} in {count(len(places) - PLACES_SHOWN, 'more place')}"


def _place(place: UndeterminedPlace) -> str:
    head = f"  {place.count:,} {place.side}, step {place.step} {place.phase}, "
    tail = f": {place.reason.value}"
    return head + shorten(module_or_root(place.module), width=CONTENT - len(head) - len(tail)) + tail


def _not_captured(comparison: Comparison) -> Iterator[Said]:
    """Names parts of the state that were not read; once where both sides left out the same."""
    missing = {side: tuple(sorted(coverage.not_captured)) for side, coverage in comparison.coverage.items()}
    if len(set(missing.values())) == 1 and len(missing) > 1:
        missing = {"neither side": next(iter(missing.values()))}
    for side, names in missing.items():
        if names:
            verb = "captured" if side == "neither side" else "did not capture"
            yield Said(f"{side} {verb} {listed(names, most=NAMES_SHOWN)}", 1)


def _ended(side: str, coverage: SideCoverage) -> Iterator[Said]:
    if coverage.status not in ("completed", ""):  # "" where none of its sessions was compared
        yield Said(f"{side}: {coverage.status}", 1)
    seen = len(coverage.steps_seen)
    if coverage.expected_steps is not None and coverage.expected_steps > seen:
        yield Said(f"{side}: {seen:,} of {coverage.expected_steps:,} expected steps seen")
    if coverage.bytes_lost:
        yield Said(f"{side}: {count(coverage.bytes_lost, 'byte')} of its journals could not be read")
    if coverage.gaps:
        gaps = [f"{reason} {number:,}" for reason, number in sorted(coverage.gaps.items())]
        yield Said(f"{side}: {listed(gaps, most=NAMES_SHOWN)}", 1)
