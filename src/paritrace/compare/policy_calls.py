"""Rules of a policy about calls, on one rank: shares without a counterpart, and bits that must agree (CP-13)."""

from collections.abc import Callable
from fnmatch import fnmatchcase

from paritrace.compare.policy import BitsAgree, CallRule, RulePlace, Tally, UndeterminedShare
from paritrace.compare.ranks import RankComparison
from paritrace.compare.result import Status
from paritrace.compare.translate import Side

Like = Callable[[int], bool]


def like(side: Side, rule: CallRule) -> Like:
    """Whether a call of one side has names like the rule's patterns."""
    known: dict[tuple[int, int, int], bool] = {}

    def is_like(i: int) -> bool:
        call = side.calls[i]
        key = (call.scope, call.function, call.context)
        if key not in known:
            known[key] = _is_like(side, i, rule)
        return known[key]

    return is_like


def _is_like(side: Side, i: int, rule: CallRule) -> bool:
    function = side.recorded.functions[side.calls[i].function]
    names = (side.module_of(i), function.name, side.context_of(i)[2], function.level.value)
    patterns = (rule.module, rule.function, rule.phase, rule.level)
    return all(pattern == "*" or fnmatchcase(name, pattern) for name, pattern in zip(names, patterns, strict=True))


def both(of: RankComparison) -> tuple[Side, Side]:
    """Both sides of a rank's comparison."""
    return of.sides.baseline, of.sides.candidate


def pairs_like(of: RankComparison, rule: CallRule) -> list[int]:
    """The pairs of which a call of either side is meant, by the baseline's index; those that ended first come first."""
    ours, theirs = (like(side, rule) for side in both(of))
    calls = of.sides.baseline.calls
    pairs = [i for i, j in enumerate(of.sides.pairing.partner_a) if j >= 0 and (ours(i) or theirs(j))]
    return sorted(pairs, key=calls.values("left").__getitem__)


def unpaired_like(of: RankComparison, rule: CallRule) -> tuple[list[int], list[int]]:
    """The calls without a counterpart that are meant, by side."""
    ours, theirs = (like(side, rule) for side in both(of))
    return [i for i in of.unpaired[0] if ours(i)], [j for j in of.unpaired[1] if theirs(j)]


def place_of_call(of: RankComparison, side: int, i: int, *, slot: str = "") -> RulePlace:
    """Where a call is; of a pair, by the baseline's index, with both record ids."""
    mine = both(of)[side]
    step, microbatch, phase = mine.context_of(i)
    partner = (of.sides.pairing.partner_a, of.sides.pairing.partner_b)[side][i]
    ids = [-1, -1]
    ids[side] = mine.calls[i].id
    if partner >= 0:
        ids[1 - side] = both(of)[1 - side].calls[partner].id
    return RulePlace(
        rank=of.rank,
        step=step,
        microbatch=microbatch,
        phase=phase,
        module=mine.module_of(i),
        function=mine.recorded.functions[mine.calls[i].function].name,
        slot=slot,
        baseline_record_id=ids[0],
        candidate_record_id=ids[1],
    )


def first_unpaired(of: RankComparison, unpaired: tuple[list[int], list[int]]) -> RulePlace | None:
    """The first call without a counterpart, of the side where it comes first."""
    firsts = [place_of_call(of, side, items[0]) for side, items in enumerate(unpaired) if items]
    return min(
        firsts, key=lambda place: (place.step, max(place.baseline_record_id, place.candidate_record_id)), default=None
    )


def undetermined_share(of: RankComparison, rule: UndeterminedShare) -> Tally:
    """The larger share of both runs; a run without such a call has none."""
    unpaired = unpaired_like(of, rule)
    shares: list[float] = []
    checked = 0
    for side, items in zip(both(of), unpaired, strict=True):
        is_like = like(side, rule)
        total = sum(is_like(i) for i in range(len(side.calls)))
        checked += total
        if total:
            shares.append(len(items) / total)
    worst = max(shares, default=None)
    broken = worst is not None and worst > rule.most
    return Tally(
        checked=checked, broken=int(broken), worst=worst, place=first_unpaired(of, unpaired) if broken else None
    )


def bits_agree(of: RankComparison, rule: BitsAgree) -> Tally:
    """Pairs whose status is not `ok` break it, or cannot be told; calls without a counterpart cannot."""
    pairs, unpaired = pairs_like(of, rule), unpaired_like(of, rule)
    status = {i: of.verdicts.status(i) for i in pairs}
    broken = [i for i in pairs if status[i] is Status.DIFFERENT]
    open_ = [i for i in pairs if status[i] is Status.INCOMPARABLE]
    first = (broken or open_)[:1]
    return Tally(
        checked=len(pairs) + len(unpaired[0]) + len(unpaired[1]),
        broken=len(broken),
        unknown=len(open_) + len(unpaired[0]) + len(unpaired[1]),
        place=place_of_call(of, 0, first[0]) if first else first_unpaired(of, unpaired),
    )
