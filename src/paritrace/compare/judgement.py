"""What an envelope says of one rank, in words and with places: exits, what stays inside, other code that adds nothing
(CP-8b, CP-10a)."""

import re
from dataclasses import dataclass

from paritrace.compare.blames import Blame
from paritrace.compare.describe import pair_difference
from paritrace.compare.envelope import MIN_DRAWS, Envelope, Excess
from paritrace.compare.exits import Exit, Judged, judge, parents
from paritrace.compare.outside import Moment, moment_of_call
from paritrace.compare.placing import UNDECIDED, Placed
from paritrace.compare.ranks import RankComparison
from paritrace.compare.result import EnvelopeUsed, Group
from paritrace.evidence.calls import Phase

PERTURBED, REPEATS = "perturbed baselines", "repeats"
ROUND_OFF = {PERTURBED: "round-off", REPEATS: "noise"}
WHOLE = 100.0  # from here on a ratio is told as a whole number
_NUMBER = re.compile(r"[0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class RankJudgement:
    """One rank of the candidate against the baseline's draws; `judged` is None where the draws make no envelope."""

    kind: str
    num_draws: int
    judged: Judged | None

    @property
    def round_off(self) -> str:
        return ROUND_OFF[self.kind]


def judgement(of: RankComparison, envelope: Envelope | None, *, kind: str, num_draws: int) -> RankJudgement:
    """Judge one rank."""
    return RankJudgement(kind=kind, num_draws=num_draws, judged=None if envelope is None else judge(of.sides, envelope))


def judged_items(of: RankComparison, items: list[Placed], by: RankJudgement) -> list[Placed]:
    """The statements of a rank with their strength; those about the inside of a call that exits are told by it."""
    judged = by.judged
    if judged is None:
        return items
    exits = {found.call for found in judged.exits}
    told = [item for item in items if not _is_inside(of, item, exits)]
    told = [item if item.difference.collective else _with_strength(of, item, by, judged) for item in told]
    first = min((moment_of_call(of, i) for i in exits), default=None)
    return [item for item in told if first is None or not _follows(item, first)]


def _follows(item: Placed, exit_: Moment) -> bool:
    """Whether a doubt about where something comes from stands behind an exit, as far out as what came in there."""
    return item.difference.group in UNDECIDED and item.moment > exit_ and (item.excess is None or item.excess.beyond)


def exits_of(of: RankComparison, by: RankJudgement) -> list[Placed]:
    """The modules whose output leaves the envelope while what came in is inside, each where it first does."""
    if by.judged is None:
        return []
    firsts: dict[tuple[str, str], Exit] = {}
    for found in by.judged.exits:
        firsts.setdefault((of.sides.baseline.module_of(found.call), of.sides.baseline.context_of(found.call)[2]), found)
    return [
        Placed(
            moment_of_call(of, found.call),
            pair_difference(of, found.call, Blame(Group.EXCEEDS)),
            _later(of, by.judged, found.call),
            ("call", found.call),
            strength=_beyond(found.excess, by, by.judged.envelope),
            excess=found.excess,
        )
        for found in firsts.values()
    ]


def within(of: RankComparison, by: RankJudgement) -> list[Placed]:
    """Other code on both sides whose module adds no more error than the draws' do; of like modules the first."""
    judged = by.judged
    if judged is None:
        return []
    found: dict[str, Placed] = {}
    for stretch in of.stretches.found:
        i = judged.enclosing(of.sides, stretch.a[0]) if stretch.a and stretch.b else -1
        if i < 0 or of.sides.baseline.context_of(i)[2] != Phase.FORWARD:
            continue
        gain = judged.gain(of.sides, i)
        like = _NUMBER.sub("#", of.sides.baseline.module_of(i))
        if gain is None or gain.beyond or like in found:
            continue
        cause = f"{len(stretch.a):,} calls against {len(stretch.b):,}"
        place = pair_difference(of, i, Blame(Group.WITHIN, cause))
        strength = (
            f"inside {by.round_off}: its output has {gain.error:.1f} times the error of its input, {gain.expected:.1f}"
            f" times is usual of {by.num_draws} {by.kind} and up to {gain.reached * gain.expected:.1f} stays inside"
        )
        found[like] = Placed(moment_of_call(of, i), place, 0, ("call", i), strength=strength, excess=gain)
    return list(found.values())


def envelope_used(ranks: list[RankJudgement]) -> EnvelopeUsed | None:
    """What all ranks were judged by."""
    if not ranks:
        return None
    judged = [rank.judged for rank in ranks if rank.judged is not None]
    num_draws = min(rank.num_draws for rank in ranks)
    if not judged:
        few = f"{num_draws} of at least {MIN_DRAWS} draws" if num_draws < MIN_DRAWS else ""
        why = few or "the draws agree with the baseline in all that level module summarised: no spread to judge by"
        return EnvelopeUsed(kind=ranks[0].kind, num_draws=num_draws, why=why)
    excesses = [excess for each in judged for excess in (*each.outputs.values(), *each.numbers.values())]
    return EnvelopeUsed(
        kind=ranks[0].kind,
        num_draws=num_draws,
        false_rate=max(each.envelope.false_rate for each in judged),
        judged=len(excesses),
        beyond=sum(excess.beyond for excess in excesses),
        largest=max((excess.ratio / excess.reached for excess in excesses if excess.reached), default=None),
    )


def _is_inside(of: RankComparison, item: Placed, exits: set[int]) -> bool:
    """Whether a statement is about a call, or a stretch of calls, that a call which exits encloses."""
    start = _first_call(of, item)
    return start >= 0 and any(i in exits for i in (start, *parents(of.sides, start)))


def _first_call(of: RankComparison, item: Placed) -> int:
    if item.root is None:
        return -1
    if item.root[0] == "call":
        return item.root[1]
    stretch = of.stretches.found[item.root[1]]
    return stretch.a[0] if stretch.a else stretch.after[0]


def _with_strength(of: RankComparison, item: Placed, by: RankJudgement, judged: Judged) -> Placed:
    place = item.difference
    if place.level == "digest" and item.root is None:
        excess = judged.numbers.get((place.step, place.function, place.microbatch))
    else:
        start = _first_call(of, item)
        excess = judged.around(of.sides, start) if start >= 0 else None
    if excess is None:
        return item
    if excess.beyond:
        strength = f"beyond {by.round_off}, and so is what came in: a consequence, or a part of one"
    else:
        strength = f"inside {by.round_off}: {_told(excess)}; up to {excess.reached:.1f} stays inside"
    return item._replace(strength=f"{strength} ({by.num_draws} {by.kind})", excess=excess)


def _beyond(excess: Excess, by: RankJudgement, envelope: Envelope) -> str:
    return (
        f"beyond {by.round_off}: {_told(excess)}; the most extreme of {by.num_draws} left-out {by.kind} reached"
        f" {excess.reached:.1f}; false at most 1 in {by.num_draws + 1}"
        if envelope.num_draws == by.num_draws
        else f"beyond {by.round_off}: {_told(excess)}; up to {excess.reached:.1f} stays inside"
    )


def _told(excess: Excess) -> str:
    if excess.figure == "bias":
        return f"error {excess.error:.1e}, shifted to one side by {excess.ratio:.1f} standard errors"
    what = "error" if excess.figure == "error" else "norm off, error"
    ratio = f"{excess.ratio:,.0f}" if excess.ratio >= WHOLE else f"{excess.ratio:.2g}"
    return f"{what} {excess.error:.1e}, expected {excess.expected:.1e}, ratio {ratio}"


def _later(of: RankComparison, judged: Judged, call: int) -> int:
    """How many judged outputs are out after an exit: its consequences as far as anybody can tell."""
    at = moment_of_call(of, call)
    return sum(excess.beyond and moment_of_call(of, i) > at for i, excess in judged.outputs.items())
