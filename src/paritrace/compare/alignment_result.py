"""The comparison that a review leaves: counts by what changed, findings on dissolved pairs withdrawn (CP-14): pure."""

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from paritrace.compare.alignment import Review
from paritrace.compare.alignment_apply import Change
from paritrace.compare.result import (
    Basis,
    Comparison,
    Counts,
    Difference,
    Mark,
    OneSided,
    UndeterminedPlace,
    Unpaired,
)

Dissolved = frozenset[tuple[int, int, int]]
"""Pairs that the review took apart, as (rank, baseline's record id, candidate's)."""

RUNGS = {"forward": ("forward",), "backward": ("backward", "reduced grads"), "optimizer": ("optimizer",)}


def aligned(comparison: Comparison, changes: Sequence[Change], review: Review) -> Comparison:
    """Return the reviewed comparison. What follows from dissolved pairs is withdrawn, never worked out anew."""
    moved = [change for change in changes if not change.stays]
    gone = frozenset(_dissolved(moved))
    kept = tuple(finding for finding in comparison.findings if not _stands_on(finding.place, gone))
    withdrawn = tuple(finding.id for finding in comparison.findings if finding not in kept)
    first = comparison.first_difference
    lost = first is not None and _stands_on(first, gone)
    return replace(
        comparison,
        verdict="not_evaluated",
        policy=None,
        counts=_counts(comparison.counts, moved),
        undetermined_by_reason=_by_reason(comparison.undetermined_by_reason, moved),
        undetermined_by_place=_by_place(comparison.undetermined_by_place, moved),
        pairs_by_basis=_bases(comparison.pairs_by_basis, moved),
        findings=kept,
        origins=tuple(place for place in comparison.origins if not _stands_on(place, gone)),
        first_difference=None if lost else first,
        settled=None if lost else comparison.settled,
        first_by_rank=tuple(place for place in comparison.first_by_rank if not _stands_on(place, gone)),
        recorded_on_one_side=_one_sided(comparison, moved, gone),
        collectives=tuple(found for found in comparison.collectives if not gone.intersection(found.records)),
        ladder=_ladder(comparison, moved),
        settings=comparison.settings | {"alignment_map": review.map_sha256},
        review=replace(review, withdrawn=withdrawn),
    )


def _dissolved(moved: Iterable[Change]) -> Iterable[tuple[int, int, int]]:
    for change in moved:
        call = change.call
        if call.partner is not None:
            mine, other = call.record_id, call.partner
            yield (call.rank, mine, other) if call.side == "baseline" else (call.rank, other, mine)


def _stands_on(place: Difference, gone: Dissolved) -> bool:
    return (place.rank, place.baseline_record_id, place.candidate_record_id) in gone


def _counts(counts: Counts, moved: Sequence[Change]) -> Counts:
    delta: Counter[str] = Counter()
    for change in moved:
        call = change.call
        delta[f"undetermined_{call.side}"] += (change.partner is None) - (call.partner is None)
        if call.side == "baseline":
            delta["paired"] += (change.partner is not None) - (call.partner is not None)
            delta[call.status] -= call.partner is not None
            delta[change.status.value] += change.partner is not None
            delta["reordered"] -= call.partner is not None and call.reordered
    return replace(
        counts, **{name: getattr(counts, name) + delta[name] for name in Counts.__struct_fields__ if delta[name]}
    )


def _by_reason(known: dict[str, dict[str, int]], moved: Sequence[Change]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for side, reasons in known.items():
        counts = Counter(reasons)
        for change in moved:
            if change.call.side == side:
                counts.update(_one(change.reason))
                counts.subtract(_one(change.call.reason))
        found[side] = {reason: number for reason, number in sorted(counts.items()) if number}
    return found


def _one(word: Unpaired | Basis | str | None) -> dict[str, int]:
    return {} if word is None else {str(word): 1}


def _by_place(known: tuple[UndeterminedPlace, ...], moved: Sequence[Change]) -> tuple[UndeterminedPlace, ...]:
    """The places with the review's calls; one that was not among those listed stays out where it only loses calls."""
    counts = Counter({replace(place, count=0): place.count for place in known})
    for change in moved:
        for reason, sign in ((change.reason, 1), (change.call.reason, -1)):
            if reason is not None:
                call = change.call
                counts[
                    UndeterminedPlace(call.side, Unpaired(reason), call.step, call.phase, call.module, call.file, 0)
                ] += sign
    return tuple(replace(place, count=number) for place, number in counts.most_common() if number > 0)


def _bases(known: dict[str, int], moved: Sequence[Change]) -> dict[str, int]:
    counts = Counter(known)
    for change in moved:
        if change.call.side == "baseline":
            counts.subtract(_one(change.call.basis if change.call.partner is not None else None))
            counts.update(_one(Basis.REVIEWED if change.partner is not None else None))
    return {basis: number for basis, number in sorted(counts.items()) if number}


def _one_sided(comparison: Comparison, moved: Sequence[Change], gone: Dissolved) -> tuple[OneSided, ...]:
    touched = {(change.call.side, change.call.rank, change.call.record_id) for change in moved}
    return tuple(
        record
        for record in comparison.recorded_on_one_side
        if (record.side, record.rank, record.record_id) not in touched
        and not gone & {(record.rank, *record.after_pair), (record.rank, *record.before_pair)}
    )


def _ladder(comparison: Comparison, moved: Sequence[Change]) -> dict[str, Mark]:
    """Rungs of phases in which a pair was made or dissolved are open: nothing was judged anew."""
    phases = {
        change.call.phase
        for change in moved
        if change.call.step == comparison.ladder_step and change.partner != change.call.partner
    }
    open_ = {rung for phase in phases for rung in RUNGS.get(phase, ())}
    return {
        rung: Mark.UNDETERMINED if rung in open_ and mark is not Mark.NOT_REACHED else mark
        for rung, mark in comparison.ladder.items()
    }
