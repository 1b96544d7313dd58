"""What an envelope says of one rank, in words and with places: exits, what stays inside, other code that adds nothing
(CP-8b, CP-10a)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf

from paritrace.compare.blames import Blame
from paritrace.compare.choices import Choice, first_choice, told_choice
from paritrace.compare.describe import pair_difference
from paritrace.compare.envelope import MIN_DRAWS, Envelope, Excess
from paritrace.compare.exits import Exit, Judged, is_typical, judge, parents
from paritrace.compare.gains import Gain, gain_of, gain_reached
from paritrace.compare.judged_words import (
    PERTURBED,
    REPEATS,
    ROUND_OFF,
    behind,
    beyond,
    consequence,
    inside,
    inside_by_gain,
    no_round_off,
    told_otherwise,
)
from paritrace.compare.leading import first_unexplained, leading, stands_before
from paritrace.compare.measured import Measured
from paritrace.compare.outside import Moment, moment_of_call
from paritrace.compare.placing import UNDECIDED, Placed
from paritrace.compare.ranks import RankComparison
from paritrace.compare.result import EnvelopeUsed, Group
from paritrace.compare.state_exits import state_exits
from paritrace.compare.whole_numbers import of_whole_numbers
from paritrace.evidence.calls import Phase

__all__ = ["PERTURBED", "REPEATS"]
_NUMBER = re.compile(r"[0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class RankJudgement:
    """One rank of the candidate against the baseline's draws; `judged` is None where the draws make no envelope.

    `measured` is there while the rank's calls are; `kept` is what remains. `jointly`: the draws' limits are those of
    several ranks, so that one rate holds for all of them together.
    """

    kind: str
    num_draws: int
    judged: Judged | None
    measured: Measured | None = None
    choice: Choice | None = None
    jointly: bool = False

    @property
    def round_off(self) -> str:
        return ROUND_OFF[self.kind]

    def beyond(self, excess: Excess, gain: Gain | None = None) -> str:
        """The strength of what leaves the envelope, in words."""
        return beyond(excess, gain, num_draws=self.num_draws, kind=self.kind, jointly=self.jointly)

    def behind(self, module: str, excess: Excess) -> str:
        """The strength of an origin behind which something leaves that no exit explains."""
        return behind(module, excess, num_draws=self.num_draws, kind=self.kind)

    def kept(self) -> "RankJudgement":
        """Without the calls."""
        return replace(self, measured=None)


def judgement(
    of: RankComparison, envelope: Envelope | None, *, kind: str, num_draws: int, jointly: bool = False
) -> RankJudgement:
    """Judge one rank."""
    if envelope is None:
        return RankJudgement(kind=kind, num_draws=num_draws, judged=None)
    measured, choice = Measured(of.sides, envelope), first_choice(of)
    judged = judge(measured, choice, reading=of.reading)
    return RankJudgement(
        kind=kind, num_draws=num_draws, judged=judged, measured=measured, choice=choice, jointly=jointly
    )


def judged_items(of: RankComparison, items: list[Placed], by: RankJudgement) -> list[Placed]:
    """The statements of a rank with their strength.

    Those about the inside of a call that exits, and doubts behind it, are told by the exit: they stay in the order of
    what differs, but are no findings. The one origin that no envelope judges, before something that is out and that no
    exit explains, comes before the exits.
    """
    judged = by.judged
    if judged is None:
        return items
    exits = {found.call for found in judged.exits}
    first = min((moment_of_call(of, i) for i in exits), default=None)
    found = [item if item.difference.collective else _with_strength(of, item, by, judged) for item in items]
    out = first_unexplained(of, judged)
    lead = None if out is None else leading(found, moment_of_call(of, out))
    if out is not None and lead is not None:
        found[found.index(lead)] = lead._replace(
            strength=by.behind(of.sides.baseline.module_of(out), judged.outputs[out]), leads=True
        )
    return [
        item._replace(told=_is_inside(of, item, exits) or (first is not None and _follows(item, first)))
        for item in found
    ]


def _follows(item: Placed, exit_: Moment) -> bool:
    """Whether a doubt about where something comes from stands behind an exit, as far out as what came in there."""
    return item.difference.group in UNDECIDED and item.moment > exit_ and (item.excess is None or item.excess.beyond)


def exits_of(of: RankComparison, by: RankJudgement, *, led: bool = False) -> list[Placed]:
    """The modules whose output leaves the envelope while what came in is inside, each where it first does.

    `led`: an origin stands before them. Behind it, as behind a state that leaves, what comes in has to be typical.
    """
    if by.judged is None or by.measured is None:
        return []
    firsts: dict[tuple[str, str], Exit] = {}
    for found in by.judged.exits:
        firsts.setdefault((of.sides.baseline.module_of(found.call), of.sides.baseline.context_of(found.call)[2]), found)
    calls = [_exit(of, found, by, by.judged, by.measured) for found in firsts.values()]
    states = [item for item in state_exits(of, by.judged) if stands_before(item, calls)]
    if led or states:
        calls = [item for item in calls if item.root is not None and is_typical(by.measured, item.root[1])]
    choices = [] if by.choice is None or calls or states else [_choice(of, by.choice, by)]
    told = [item._replace(strength=by.beyond(item.excess)) for item in states if item.excess is not None]
    return [*told, *calls, *choices]


def _choice(of: RankComparison, choice: Choice, by: RankJudgement) -> Placed:
    """The first discrete choice that differs, where nothing is out before it."""
    strength = f"{told_choice(of, choice)}; what is before it is inside {by.round_off}, sizes behind it are not judged"
    return Placed(
        moment_of_call(of, choice.call),
        pair_difference(of, choice.call, Blame(Group.CHOOSES)),
        sum(moment_of_call(of, i) > moment_of_call(of, choice.call) for i in of.origins.blames),
        ("call", choice.call),
        strength=f"{strength} ({by.num_draws} {by.kind})",
    )


def _exit(of: RankComparison, found: Exit, by: RankJudgement, judged: Judged, measured: Measured) -> Placed:
    gain = gain_of(measured, found.call)
    return Placed(
        moment_of_call(of, found.call),
        pair_difference(of, found.call, Blame(Group.EXCEEDS, told_otherwise(measured.one_sided(found.call)))),
        _later(of, judged, found.call),
        ("call", found.call),
        strength=by.beyond(found.excess, gain),
        excess=found.excess,
        gain=gain,
    )


def within(of: RankComparison, by: RankJudgement) -> list[Placed]:
    """Other code on both sides whose module adds no more error than the draws' do; of like modules the first.

    Other code is a stretch of other calls, or a call that is made otherwise: with an argument or a result more.
    """
    if by.judged is None or by.measured is None:
        return []
    found: dict[str, Placed] = {}
    exits = {exit_.call for exit_ in by.judged.exits}
    others = [*_other_calls(of, by.judged), *_called_otherwise(of, by.judged, by.measured)]
    reached = gain_reached(by.measured, _forward(of, by.judged)) if others else 0.0
    for i, cause in others:
        like = _NUMBER.sub("#", of.sides.baseline.module_of(i))
        gain = gain_of(by.measured, i) if like not in found and i not in exits else None
        excess = None if gain is None else gain.grown(reached)
        if gain is not None and excess is not None and not excess.beyond:
            place = pair_difference(of, i, Blame(Group.WITHIN, cause))
            strength = inside_by_gain(excess, gain, num_draws=by.num_draws, kind=by.kind)
            found[like] = Placed(
                moment_of_call(of, i), place, 0, ("call", i), strength=strength, excess=excess, gain=gain
            )
    return list(found.values())


def _forward(of: RankComparison, judged: Judged) -> list[int]:
    return [i for i in judged.outputs if of.sides.baseline.context_of(i)[2] == Phase.FORWARD]


def _other_calls(of: RankComparison, judged: Judged) -> Iterator[tuple[int, str]]:
    for stretch in of.stretches.found:
        i = judged.enclosing(of.sides, stretch.a[0]) if stretch.a and stretch.b else -1
        if i >= 0 and of.sides.baseline.context_of(i)[2] == Phase.FORWARD:
            yield i, f"{len(stretch.a):,} calls against {len(stretch.b):,}"


def _called_otherwise(of: RankComparison, judged: Judged, measured: Measured) -> Iterator[tuple[int, str]]:
    """The innermost judged calls of forward that one side alone gives an argument or a result."""
    found = {i: told for i in _forward(of, judged) if (told := told_otherwise(measured.one_sided(i)))}
    enclosing = {parent for i in found for parent in parents(of.sides, i)}
    return ((i, told) for i, told in found.items() if i not in enclosing)


def envelope_used(ranks: list[RankJudgement]) -> EnvelopeUsed | None:
    """What all ranks were judged by."""
    if not ranks:
        return None
    judged = [rank.judged for rank in ranks if rank.judged is not None]
    num_draws = min(rank.num_draws for rank in ranks)
    if not judged:
        few = f"{num_draws} of at least {MIN_DRAWS} draws" if num_draws < MIN_DRAWS else ""
        why = few or "at no slot that level module summarised do most draws differ from the baseline: no spread"
        return EnvelopeUsed(kind=ranks[0].kind, num_draws=num_draws, why=why)
    excesses = [
        excess for each in judged for excess in (*each.outputs.values(), *each.numbers.values(), *each.states.values())
    ]
    return EnvelopeUsed(
        kind=ranks[0].kind,
        num_draws=num_draws,
        false_rate=max(each.false_rate for each in judged),
        judged=len(excesses),
        beyond=sum(excess.beyond for excess in excesses),
        largest=max(
            (excess.ratio / excess.reached for excess in excesses if excess.reached and excess.error < inf),
            default=None,
        ),
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
    if by.kind == PERTURBED and of_whole_numbers(of, place, item.root):
        return item._replace(strength=f"{no_round_off(excess)} ({by.num_draws} {by.kind})", exact=True)
    if excess is None:
        return item
    strength = consequence(by.kind) if excess.beyond else inside(excess, kind=by.kind)
    return item._replace(strength=f"{strength} ({by.num_draws} {by.kind})", excess=excess)


def _later(of: RankComparison, judged: Judged, call: int) -> int:
    """How many judged outputs are out after an exit: its consequences as far as anybody can tell."""
    at = moment_of_call(of, call)
    return sum(excess.beyond and moment_of_call(of, i) > at for i, excess in judged.outputs.items())
