"""Rules of a policy about what is known of steps and settings without calls, on one rank (CP-13, A-13, A-19)."""

from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatchcase
from math import isfinite

from paritrace.compare.digests import Digests
from paritrace.compare.figure_rows import Key
from paritrace.compare.load import Recorded
from paritrace.compare.policy import ConfigValue, RulePlace, StatesAgree, StepValue, Tally
from paritrace.compare.ranks import RankComparison

NEVER = float("inf")


def states_agree(of: RankComparison, rule: StatesAgree) -> Tally:
    """Figures that differ break it; those that a side could not state cannot be told."""
    digests = of.digests
    broken = sorted(key for key in digests.different if _is_like(key, rule))
    unknown = sorted(key for key in digests.unknown if _is_like(key, rule))
    first = (broken or unknown)[:1]
    return Tally(
        checked=sum(_is_like(key, rule) for key in digests.equal) + len(broken) + len(unknown),
        broken=len(broken),
        unknown=len(unknown),
        place=_place(of, first[0]) if first else None,
    )


def _is_like(key: Key, rule: StatesAgree) -> bool:
    _, _, moment, group, name = key
    return all(
        pattern == "*" or fnmatchcase(each, pattern)
        for each, pattern in ((moment, rule.moment), (group, rule.group), (name, rule.state))
    )


def _place(of: RankComparison, key: Key) -> RulePlace:
    step, microbatch, moment, group, name = key
    return RulePlace(of.rank, step, microbatch, phase=moment, slot=name if name == group else f"{group} {name}")


def step_value(of: RankComparison, rule: StepValue) -> Tally:
    """The figure of each step (and micro-batch) on both sides; one that is not finite never passes."""
    ours, theirs = (_values(side.recorded, rule.of) for side in (of.sides.baseline, of.sides.candidate))
    gone = _gone(of.digests, rule.of)
    apart = {key: _apart(ours[key], theirs[key]) for key in ours.keys() & theirs.keys() - gone}
    broken = sorted(key for key, (absolute, relative) in apart.items() if _breaks(rule, absolute, relative))
    unknown = sorted((ours.keys() | theirs.keys() | gone) - apart.keys())
    first = (broken or unknown)[:1]
    return Tally(
        checked=len(apart) + len(unknown),
        broken=len(broken),
        unknown=len(unknown),
        worst=max((each[1 if rule.relative is not None else 0] for each in apart.values()), default=None),
        place=RulePlace(of.rank, first[0][0], first[0][1], slot=rule.of) if first else None,
        facts=tuple(_told(rule.of, key, ours[key], theirs[key]) for key in broken[:1]),
    )


_Step = tuple[int, int, int]
"""Step, micro-batch, which of its losses."""


def _values(side: Recorded, of: str) -> dict[_Step, float]:
    found: dict[_Step, float] = {}
    if of == "grad_norm":
        marks = [(step.step, 0, step.grad_norm) for step in side.steps]
    else:
        marks = [(loss.step, loss.microbatch, loss.value) for loss in side.losses]
    seen = Counter[tuple[int, int]]()
    for step, microbatch, value in marks:
        number = seen[step, microbatch]
        if isinstance(value, str):
            seen[step, microbatch] += 1
            found[step, microbatch, number] = float.fromhex(value)
    return found


def _gone(digests: Digests, of: str) -> set[_Step]:
    """What a side could not state, or what is made of unlike things on both sides."""
    keys = (key for key in digests.unknown if key[3] == of)
    return {(key[0], key[1], int(key[4].partition("[")[2].rstrip("]") or 0)) for key in keys}


def _apart(ours: float, theirs: float) -> tuple[float, float]:
    if not isfinite(ours) or not isfinite(theirs):
        return NEVER, NEVER
    absolute = abs(ours - theirs)
    return absolute, absolute / max(abs(ours), abs(theirs)) if absolute else 0.0


def _breaks(rule: StepValue, absolute: float, relative: float) -> bool:
    over = (
        rule.absolute is not None and absolute > rule.absolute,
        rule.relative is not None and relative > rule.relative,
    )
    return any(over)


def _told(of: str, key: _Step, ours: float, theirs: float) -> str:
    factor = f", ratio {theirs / ours:.6g}" if ours and isfinite(ours) and isfinite(theirs) else ""
    return f"{of} {ours:.6g} against {theirs:.6g} at step {key[0]}{factor}"


def config_value(of: RankComparison, rule: ConfigValue) -> Tally:
    """What a run recorded of a setting, against what is declared; both runs may agree and both be wrong."""
    sides = {"baseline": of.sides.baseline.recorded, "candidate": of.sides.candidate.recorded}
    asked = [rule.side] if rule.side != "both" else list(sides)
    observed = {side: sides[side].config.get(rule.source, {}).get(rule.setting) for side in asked}
    wrong = {side: value for side, value in observed.items() if value is not None and not _same(value, rule.value)}
    return Tally(
        checked=len(observed),
        broken=len(wrong),
        unknown=sum(value is None for value in observed.values()),
        facts=tuple(_unlike(rule, wrong)),
    )


def _same(observed: str, declared: str) -> bool:
    try:
        return observed == declared or float(observed) == float(declared)
    except ValueError:
        return False


def _unlike(rule: ConfigValue, wrong: dict[str, str]) -> Iterator[str]:
    for side, value in wrong.items():
        yield f"{rule.source}.{rule.setting}: declared {rule.value}, observed {value} ({side})"
