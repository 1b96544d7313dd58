"""What could not be decided: counts by reason and place, calls of one side, and what would settle it (CP-3c, CP-21)."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from paritrace.compare.blames import Blame
from paritrace.compare.describe import pair_difference
from paritrace.compare.ranks import DROPPING, RankComparison
from paritrace.compare.result import Difference, Group, OneSided, Settled, UndeterminedPlace, Unpaired

SIDES = ("baseline", "candidate")
MAX_PLACES = 200
MAX_ONE_SIDED = 500


def by_reason(rank: RankComparison) -> tuple[Counter[str], Counter[str]]:
    """Count the unpaired calls of each side of one rank by reason."""
    ours, theirs = (Counter(reason.value for reason in reasons.values()) for reasons in rank.reasons)
    return ours, theirs


def reasons_of(ranks: Sequence[tuple[Counter[str], Counter[str]]]) -> dict[str, dict[str, int]]:
    """The counts of all ranks by side and reason."""
    found: dict[str, dict[str, int]] = {}
    for side, name in enumerate(SIDES):
        counts: Counter[str] = Counter()
        for rank in ranks:
            counts.update(rank[side])
        found[name] = dict(sorted(counts.items()))
    return found


def by_place(rank: RankComparison) -> Counter[UndeterminedPlace]:
    """Count the unpaired calls of each side of one rank by reason and place; the records' own count is 0."""
    counts: Counter[UndeterminedPlace] = Counter()
    for number, name in enumerate(SIDES):
        side = (rank.sides.baseline, rank.sides.candidate)[number]
        for i, reason in rank.reasons[number].items():
            step, _, phase = side.context_of(i)
            file = side.recorded.sites[side.calls.values("site")[i]].file
            counts[UndeterminedPlace(name, reason, step, phase, side.module_of(i), file, 0)] += 1
    return counts


def places_of(ranks: Sequence[Counter[UndeterminedPlace]]) -> tuple[UndeterminedPlace, ...]:
    """The places of all ranks, the largest first."""
    counts: Counter[UndeterminedPlace] = Counter()
    for rank in ranks:
        counts.update(rank)
    return tuple(
        UndeterminedPlace(p.side, p.reason, p.step, p.phase, p.module, p.file, count)
        for p, count in counts.most_common(MAX_PLACES)
    )


def one_sided(rank: RankComparison) -> tuple[OneSided, ...]:
    """Calls that stand on one side only between two paired neighbours, where recording was complete (CP-21)."""
    if not _complete(rank):
        return ()
    found = [
        record
        for stretch in rank.stretches.found
        if bool(stretch.a) != bool(stretch.b)
        for record in _records(rank, stretch.a, stretch.b, after=stretch.after, before=stretch.before)
    ]
    return tuple(sorted(found, key=lambda r: (r.rank, r.step, r.record_id))[:MAX_ONE_SIDED])


def _complete(rank: RankComparison) -> bool:
    sides = (rank.sides.baseline.recorded, rank.sides.candidate.recorded)
    return all(side.end is not None and not side.bytes_lost and not DROPPING & side.gaps.keys() for side in sides)


def _records(
    rank: RankComparison, a: list[int], b: list[int], *, after: tuple[int, int], before: tuple[int, int]
) -> Iterator[OneSided]:
    side, items, name = (rank.sides.baseline, a, SIDES[0]) if a else (rank.sides.candidate, b, SIDES[1])
    groups: dict[tuple[str, str, int], list[int]] = {}
    for i in items:
        site = side.recorded.sites[side.calls[i].site]
        function = side.recorded.functions[side.calls[i].function].name
        groups.setdefault((function, site.file, site.line), []).append(i)
    for (function, file, line), members in groups.items():
        first = members[0]
        yield OneSided(
            side=name,
            rank=rank.rank,
            step=side.context_of(first)[0],
            module=side.module_of(first),
            function=function,
            file=file,
            line=line,
            count=len(members),
            record_id=side.calls[first].id,
            after_pair=_ids(rank, after),
            before_pair=_ids(rank, before),
        )


def _ids(rank: RankComparison, pair: tuple[int, int]) -> tuple[int, int]:
    if pair[0] < 0 or pair[1] < 0:
        return (-1, -1)
    return (rank.sides.baseline.calls[pair[0]].id, rank.sides.candidate.calls[pair[1]].id)


def settled(rank: RankComparison, first: Difference | None) -> Settled | None:
    """What is known around a rank's first difference when no call can be named for it (CP-30)."""
    if first is None or first.collective or first.group not in (Group.UNDETERMINED, Group.AFTER_UNALIGNED):
        return None
    place, other = _places(rank, first)
    last = _last_equal(rank, place)
    start = (-1, -1) if last is None else (last, rank.sides.pairing.partner_a[last])
    between = (_unpaired_in(rank.reasons[0], start[0], place), _unpaired_in(rank.reasons[1], start[1], other))
    why = Counter(
        reason.value
        for reasons, low, high in ((rank.reasons[0], start[0], place), (rank.reasons[1], start[1], other))
        for i, reason in reasons.items()
        if low < i < high
    )
    return Settled(
        last_equal=None if last is None else pair_difference(rank, last, Blame(Group.UNDETERMINED, "agrees")),
        first_different=first,
        between_baseline=between[0],
        between_candidate=between[1],
        why=dict(sorted(why.items())),
        would_settle=_would_settle(rank, first, between=((start[0], place), (start[1], other))),
    )


def _places(rank: RankComparison, first: Difference) -> tuple[int, int]:
    """Where a difference stands among the calls of each side; a figure of a step behind the calls that ended before."""
    sides = (rank.sides.baseline, rank.sides.candidate)
    figure = rank.digests.find(first.step, first.function, first.slot) if first.level == "digest" else None
    if figure is None:
        return sides[0].index_of[first.baseline_record_id], sides[1].index_of[first.candidate_record_id]
    ours, theirs = (side.calls.values("id") for side in sides)
    return bisect_right(ours, figure.at), bisect_right(theirs, figure.other_at)


def _last_equal(rank: RankComparison, place: int) -> int | None:
    partners = rank.sides.pairing.partner_a
    blames = rank.origins.blames
    for i in range(min(place, len(partners)) - 1, -1, -1):
        if partners[i] >= 0 and i not in blames and rank.sides.baseline.calls[i].outputs:
            return i
    return None


def _unpaired_in(reasons: Mapping[int, Unpaired], low: int, high: int) -> int:
    return sum(low < i < high for i in reasons)


def _would_settle(
    rank: RankComparison, first: Difference, *, between: tuple[tuple[int, int], tuple[int, int]]
) -> tuple[str, ...]:
    """Commands that would decide it, the cheapest first; none asks for a level that is recorded already."""
    steps = f"--steps {first.step}:{first.step + 1}"
    levels = {function.level.value for function in rank.sides.baseline.recorded.functions.values()}
    if first.level == "digest" and "op" not in levels:
        return (
            f"capture both runs again at this step: paritrace run --level module {steps} -o NEW SCRIPT",
            f"and operator by operator: paritrace run --level module --level op {steps} -o NEW SCRIPT",
        )
    if "op" not in levels:
        return (
            f"capture both runs operator by operator: paritrace run --level module --level op {steps} -o NEW SCRIPT",
        )
    apart = _first_unpaired(rank, between)
    return () if apart is None else (f"read why calls before it have no partner: paritrace why-not {apart}",)


def _first_unpaired(rank: RankComparison, between: tuple[tuple[int, int], tuple[int, int]]) -> str | None:
    """SIDE:ID of the first call without a partner between two places of either side."""
    for number, (low, high) in enumerate(between):
        side = (rank.sides.baseline, rank.sides.candidate)[number]
        found = next((i for i in rank.unpaired[number] if low < i < high), None)
        if found is not None:
            return f"{SIDES[number]}:{side.calls[found].id}"
    return None
