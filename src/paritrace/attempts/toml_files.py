"""Reads the files that a user writes about attempts: a gate and a rate card, both TOML (AT-8, AT-17)."""

import tomllib
from collections.abc import Callable, Iterator
from math import isfinite
from typing import cast

import msgspec

from paritrace.attempts.gate import KINDS, Gate
from paritrace.attempts.rate_card import FORMAT, VERSION, RateCard
from paritrace.errors import RequestError
from paritrace.evidence.problems import problems_of
from paritrace.evidence.versions import Reading, reading_of

Table = dict[str, object]
MEND = "mend them all; `paritrace schema {}` prints the format"


def parse_gate(data: bytes, *, name: str) -> Gate:
    """Returns the rules of a gate file.

    Raises:
        RequestError: Refused, `bad_gate`: `details` has every problem of the file.
    """
    table, problems = _looked_at(data, _of_gate)
    if problems:
        raise RequestError(
            f"{name} is no gate of attempts: {_count(problems)}",
            code="bad_gate",
            fix=MEND.format("attempts-gate"),
            details=problems,
        )
    return msgspec.convert(table, Gate)


def parse_rate_card(data: bytes, *, name: str) -> RateCard:
    """Returns a rate card.

    Raises:
        RequestError: Refused, `bad_rate_card`: `details` has every problem of the file.
    """
    table, problems = _looked_at(data, _of_card)
    if problems:
        raise RequestError(
            f"{name} is no rate card: {_count(problems)}",
            code="bad_rate_card",
            fix=MEND.format("rate-card"),
            details=problems,
        )
    return msgspec.convert(table, RateCard)


def _looked_at(data: bytes, problems_in: Callable[[Table], Iterator[str]]) -> tuple[Table, tuple[str, ...]]:
    """The table of a file, and everything that is wrong with it."""
    try:
        table: Table = tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        return {}, (f"not valid TOML: {error}",)
    return table, tuple(problems_in(table))


def _of_gate(table: Table) -> Iterator[str]:
    yield from problems_of({**table, "rules": []}, Gate)
    rules = table.get("rules")
    if not isinstance(rules, list) or not rules:
        yield "rules: at least one is needed, each as a table [[rules]]"
        return
    for number, rule in enumerate(cast("list[object]", rules)):
        entry = cast("dict[str, object]", rule) if isinstance(rule, dict) else {}
        kind = entry.get("kind")
        if not isinstance(kind, str) or kind not in KINDS:
            yield f"rules[{number}]: its kind is {kind!r}; there are {', '.join(sorted(KINDS))}"
        else:
            yield from problems_of(entry, KINDS[kind], place=f"rules[{number}]")


def _of_card(table: Table) -> Iterator[str]:
    version = str(table.get("format_version"))
    if table.get("format") != FORMAT or reading_of(version, ours=VERSION) is not Reading.SAME:
        yield f'it has to say format = "{FORMAT}" and format_version = "{VERSION}"'
        return
    found = tuple(problems_of(table, RateCard))
    yield from found
    if found:
        return
    card = msgspec.convert(table, RateCard)
    for model, rates in card.models.items():
        for name, rate in msgspec.structs.asdict(rates).items():
            if rate is not None and not isfinite(rate):
                yield f"models.{model}.{name}: is no finite number"


def _count(problems: tuple[str, ...]) -> str:
    return f"{len(problems)} {'problem' if len(problems) == 1 else 'problems'}"
