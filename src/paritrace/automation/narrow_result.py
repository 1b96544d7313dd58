"""From the rounds of a narrowing to its result (CP-15)."""

from collections.abc import Sequence

from paritrace.automation.narrow_records import FORMAT, ITSELF, VERSION, Ended, Narrowed, Question, Seen
from paritrace.automation.narrow_rules import followed
from paritrace.automation.narrow_words import WHY
from paritrace.compare.differing import differs
from paritrace.compare.repeats import is_beyond
from paritrace.compare.result import Comparison, Finding, Repeats
from paritrace.reports.headline import statement

MOST_OTHERS = 5
NO_FINER = "nothing finer is recorded than operators: dump the tensors around it, and compare them element by element"
REPEATABLE = "make the baseline repeatable (paritrace run --deterministic, fixed seeds), or judge by repeats: --noise"


def narrowed(
    seen: Sequence[Seen],
    ended: Ended,
    *,
    sides: tuple[str, str],
    directory: str,
    cut_off: Sequence[str] = (),
) -> Narrowed:
    """The result: what stands, what else was found, and what would go further."""
    last = last_compared(seen, ended)
    _, sentence, strength = statement(last)
    strength = _judged_before(seen, last) or strength
    place = followed(last) if ended in (Ended.FOUND, Ended.OUTSIDE) else None
    return Narrowed(
        format=FORMAT,
        version=VERSION,
        baseline=sides[0],
        candidate=sides[1],
        directory=directory,
        ended=ended,
        sentence=sentence,
        strength=strength,
        place=place,
        others=_others(seen, last),
        rounds=tuple(one.round for one in seen),
        seconds=round(sum(one.round.seconds for one in seen), 3),
        num_bytes=sum(one.round.num_bytes for one in seen),
        further=_further(last, ended),
        remarks=_remarks(seen, cut_off),
        repeats=_repeats(seen),
    )


def _judged_before(seen: Sequence[Seen], last: Comparison) -> str:
    """How far out the module was around a place that bits alone decide, by the round that draws judged; "" else."""
    place = followed(last)
    if place is None or (last.envelope is not None and last.envelope.judged):
        return ""
    for one in reversed(seen):
        told = one.comparison.findings[:1]
        if told and is_beyond(told[0]) and told[0].place.step == place.step:
            around = told[0].place.module
            if not around or f"{place.module}.".startswith(f"{around}."):
                return f"by round {one.round.number}, of {around or 'the root module'}: {told[0].strength}"
    return ""


def last_compared(seen: Sequence[Seen], ended: Ended) -> Comparison:
    """The comparison that the result speaks of: the baseline's with itself where that is the answer."""
    if ended is Ended.NOT_REPEATABLE:
        own = [one.comparison for one in seen if one.round.plan.question in ITSELF]
        return next((one for one in reversed(own) if differs(one)), own[0])
    return next(one.comparison for one in reversed(seen) if one.round.plan.question not in ITSELF)


def _repeats(seen: Sequence[Seen]) -> Repeats | None:
    """By calls where these were looked at and one showed it: what repeats by chance alone says less."""
    own = [one.comparison.repeats for one in reversed(seen) if one.round.plan.question in ITSELF]
    known = [one for one in own if one is not None]
    return next((one for one in known if one.num_differing), next(iter(known), None))


def _others(seen: Sequence[Seen], last: Comparison) -> tuple[Finding, ...]:
    """The other findings of the last comparison, and those of the round by modules that lie elsewhere."""
    found = list(last.findings[1:])
    told = {last.findings[0].place.module} if last.findings else set[str]()
    told |= {one.place.module for one in found}
    for one in seen:
        if one.round.plan.question is Question.MODULES:
            found += [other for other in one.comparison.findings if not _inside(other.place.module, told)]
    return tuple(found[:MOST_OTHERS])


def _inside(module: str, told: set[str]) -> bool:
    return any(
        module == name or module.startswith(f"{name}.") or name.startswith(f"{module}.") for name in told if name
    )


def _further(last: Comparison, ended: Ended) -> tuple[str, ...]:
    match ended:
        case Ended.EVIDENCE_ENDS:
            return last.settled.would_settle if last.settled is not None else (NO_FINER,)
        case Ended.NOT_REPEATABLE:
            return (REPEATABLE,)
        case Ended.NOT_COMPARED:
            return ("record both again, so that they share a step: paritrace run --level digest -o NEW SCRIPT",)
        case Ended.NOT_SEEN_AGAIN:
            return ("capture the candidate twice and compare it with itself: it may not repeat",)
        case Ended.FOUND | Ended.OUTSIDE | Ended.NO_DIFFERENCE | Ended.INSIDE_ROUND_OFF:
            return ()


def _remarks(seen: Sequence[Seen], cut_off: Sequence[str]) -> tuple[str, ...]:
    told = dict.fromkeys(text for one in seen for text in one.round.remarks)
    left = (f"not finished, and kept: {', '.join(cut_off)}",) if cut_off else ()
    return (*told, *left)


def why(result: Narrowed) -> str:
    """Why there is no further round; "" where a call stands."""
    return WHY[result.ended]
