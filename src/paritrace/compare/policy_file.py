"""Reads a policy file; all that is wrong with it is told at once (CP-13)."""

import tomllib
from collections.abc import Iterator
from hashlib import sha256
from math import isfinite
from typing import cast

import msgspec

from paritrace.compare.policy import KINDS, AnyRule, Figure, LoadedPolicy, Policy, Rungs, StepValue, Threshold
from paritrace.errors import RequestError
from paritrace.evidence.problems import problems_of


def parse_policy(data: bytes, *, name: str) -> LoadedPolicy:
    """The policy that a TOML file holds.

    Raises:
        RequestError: Refused, `bad_policy`: `details` has every problem of the file.
    """
    try:
        table = tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:  # the last: nested too deeply
        raise _refused(name, (f"not valid TOML: {error}",)) from error
    found = tuple(_problems(table))
    if found:
        raise _refused(name, found)
    policy = msgspec.convert(table, Policy)
    unmeant = tuple(problem for number, rule in enumerate(policy.rules) for problem in _unmeant(number, rule))
    if unmeant:
        raise _refused(name, unmeant)
    return LoadedPolicy(policy, sha256(data).hexdigest())


def _problems(table: dict[str, object]) -> Iterator[str]:
    yield from problems_of({**table, "rules": []}, Policy)
    rules = table.get("rules")
    if not isinstance(rules, list) or not rules:
        yield "rules: at least one is needed, each as a table [[rules]]"
        return
    for number, rule in enumerate(cast("list[object]", rules)):
        place = f"rules[{number}]"
        entry = cast("dict[str, object]", rule) if isinstance(rule, dict) else None
        kind = None if entry is None else entry.get("kind")
        if not isinstance(kind, str) or kind not in KINDS:
            yield f"{place}: its kind is {kind!r}; there are {', '.join(sorted(KINDS))}"
        else:
            yield from problems_of(entry, KINDS[kind], place=place)


def _unmeant(number: int, rule: AnyRule) -> Iterator[str]:
    """What a rule says that could not hold, or would hold of anything."""
    place = f"rules[{number}]"
    match rule:
        case Threshold(figure=Figure.NORM_RATIO, most=most) if most < 1.0:
            yield f"{place}.most: a ratio of norms is never below 1"
        case Threshold(most=most) if not isfinite(most):
            yield f"{place}.most: is no finite number"
        case StepValue(relative=None, absolute=None):
            yield f"{place}: give relative, absolute or both"
        case StepValue(relative=relative, absolute=absolute):
            if not all(isfinite(most) for most in (relative, absolute) if most is not None):
                yield f"{place}: a limit is no finite number"
        case Rungs(rungs=()):
            yield f"{place}.rungs: names no rung"
        case _:
            pass


def _refused(name: str, problems: tuple[str, ...]) -> RequestError:
    count = f"{len(problems)} {'problem' if len(problems) == 1 else 'problems'}"
    return RequestError(
        f"{name} is no policy: {count}",
        code="bad_policy",
        fix="mend them all; `paritrace schema policy` prints the format",
        details=problems,
    )
