"""Where a baseline differs from itself, by its repeats: nothing there is the work of a change (A-08, CP-10): pure."""

from collections import Counter
from collections.abc import Sequence

from paritrace.compare.differing import differs
from paritrace.compare.result import Comparison, Difference, Finding, Group, Repeats, SelfDifference
from paritrace.evidence.calls import Level

Key = tuple[int, int, int, str, str]


def repeats_of(found: Sequence[Comparison], /) -> Repeats:
    """Where a baseline first differs from each of its repeats, each of which was compared with it.

    Args:
        found: the comparisons of one and the same run, as the baseline, with each of its repeats.
    """
    firsts = [place for one in found if (place := _first(one)) is not None]
    counts = Counter(_key(place) for place in firsts)
    by_key = {_key(place): place for place in firsts}
    ordered = sorted(by_key.values(), key=_moment)
    return Repeats(
        num_repeats=len(found),
        num_differing=sum(differs(one) for one in found),
        num_unknown=sum(not one.ranks_compared or not one.steps_compared for one in found),
        places=tuple(SelfDifference(place=place, num_repeats=counts[_key(place)]) for place in ordered),
    )


def earliest(found: Sequence[Comparison], /) -> int:
    """The index of the comparison that shows a difference first; 0 where none does."""
    shown = [(_moment(place), n) for n, one in enumerate(found) if (place := _first(one)) is not None]
    return min(shown)[1] if shown else next((n for n, one in enumerate(found) if differs(one)), 0)


def shared(repeats: Repeats | None, place: Difference, /) -> str:
    """How a difference lies to what the baseline does by itself: "at" or "after" it; "" where it is free of that."""
    if repeats is None or not repeats.places:
        return ""
    if any(_site(one.place) == _site(place) for one in repeats.places):
        return "at"
    return "after" if any(_is_after(place, one.place) for one in repeats.places) else ""


def is_beyond(finding: Finding, /) -> bool:
    """Whether draws or repeats judge a finding to be beyond them, wherever the baseline differs from itself."""
    return finding.ratio is not None and finding.reached is not None and finding.ratio > finding.reached


def _first(found: Comparison) -> Difference | None:
    if found.first_difference is not None or found.settled is None:
        return found.first_difference
    return found.settled.first_different


def _key(place: Difference) -> Key:
    return (place.rank, place.step, place.baseline_record_id, place.function, place.slot)


def _moment(place: Difference) -> tuple[int, bool, int, int]:
    """Calls in the order of the baseline's records; a figure of a step, which names no call, stands behind them."""
    behind = place.level == Level.DIGEST and place.group is not Group.OUTSIDE
    return (place.step, behind, place.baseline_record_id, place.rank)


def _site(place: Difference) -> tuple[str, str, str, int]:
    return (place.module, place.function, place.file, place.line)


def _is_after(place: Difference, own: Difference) -> bool:
    """Later steps read what earlier ones wrote; within a step only the order of one rank is known."""
    if place.step != own.step:
        return place.step > own.step
    return place.rank == own.rank and place.baseline_record_id > own.baseline_record_id >= 0
