"""Declared maps: `--map` says which modules, files and functions of two runs correspond (CP-5, CP-12)."""

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import combinations

from msgspec import Struct

from paritrace.errors import RequestError

SIDES = ("baseline", "candidate")
_MAP = re.compile(
    r"(?:(?P<side>baseline|candidate)(?:@(?P<rank>\d{1,6}))?:)?"
    r"(?:(?P<of>module|file|function):)?(?P<old>[^=:]*)=(?P<new>[^=:]*)"
)


class Of(StrEnum):
    """What a map names: prefixes of module paths (and of what modules own), files or folders, whole functions."""

    MODULE = "module"
    FILE = "file"
    FUNCTION = "function"


class Renaming(Struct, frozen=True):
    """One `--map`: on `side` (and `rank`; -1: all), what is called `old`, or stands below it, is read as `new`."""

    old: str
    new: str
    side: str = "baseline"
    rank: int = -1
    of: Of = Of.MODULE

    def __str__(self) -> str:
        place = f"{self.side}{'' if self.rank < 0 else f'@{self.rank}'}"
        return f"{place}:{'' if self.of is Of.MODULE else f'{self.of.value}:'}{self.old}={self.new}"

    def renamed(self, name: str, *, side: str, rank: int) -> str | None:
        """The name as it is read, None where this rule does not apply."""
        if self.side != side or self.rank not in (-1, rank) or not name.startswith(self.old):
            return None
        rest = name.removeprefix(self.old)
        match self.of:
            case Of.FUNCTION:
                return None if rest else self.new
            case Of.FILE:
                return self.new + rest if rest[:1] in ("", "/") or not self.old or self.old.endswith("/") else None
            case Of.MODULE:
                return self._below(rest)

    def _below(self, rest: str) -> str | None:
        if self.old and rest[:1] not in ("", ".", ":"):  # `layers.1` is no beginning of `layers.10`
            return None
        rest = rest.removeprefix(".")
        return f"{self.new}.{rest}" if self.new and rest and not rest.startswith(":") else self.new + rest


def rule_for(name: str, rules: Sequence[Renaming], *, of: Of, side: str, rank: int) -> tuple[Renaming, str] | None:
    """The rule that renames a name, with the name as it is read: of several the one that names most of it."""
    found = [
        (rule, read)
        for rule in rules
        if rule.of is of and (read := rule.renamed(name, side=side, rank=rank)) is not None
    ]
    return max(found, key=lambda pair: len(pair[0].old), default=None)


def parse_map(text: str) -> Renaming:
    """Read `[SIDE[@RANK]:][module:|file:|function:]OLD=NEW`; without a side, names of the baseline.

    `OLD=OLD` keeps a name as it is where a map of something around it would change it.

    Raises:
        RequestError: Refused, `bad_map`.
    """
    (found,) = parse_maps((text,))
    return found


def parse_maps(texts: Sequence[str]) -> tuple[Renaming, ...]:
    """Read several maps, as `parse_map` does.

    Raises:
        RequestError: Refused, `bad_map`: `details` has all that are none, where there are several.
    """
    read = [(text, _parsed(text)) for text in texts]
    bad = tuple(text for text, found in read if found is None)
    if bad:
        raise RequestError(
            f"--map {bad[0]!r} is not OLD=NEW" if len(bad) == 1 else f"{len(bad)} of --map are not OLD=NEW",
            code="bad_map",
            fix="give prefixes of module names, for example --map model.layers=blocks or candidate@1:layers.0=layers.2;"
            " file:OLD=NEW and function:OLD=NEW map files and functions",
            details=bad if len(bad) > 1 else (),
        )
    return tuple(found for _, found in read if found is not None)


def _parsed(text: str) -> Renaming | None:
    match = _MAP.fullmatch(text)
    if match is None or not (match["old"] or match["new"]):
        return None
    of = Of(match["of"] or Of.MODULE)
    if of is Of.FUNCTION and "" in (match["old"], match["new"]):
        return None
    rank = -1 if match["rank"] is None else int(match["rank"])
    return Renaming(old=match["old"], new=match["new"], side=match["side"] or SIDES[0], rank=rank, of=of)


def without_conflicts(rules: Sequence[Renaming]) -> tuple[Renaming, ...]:
    """The rules, each once.

    Raises:
        RequestError: Refused, `conflicting_maps`: all of the pairs of rules that cannot both be meant.
    """
    once = tuple(dict.fromkeys(rules))
    found = tuple(_conflicts(once))
    if not found:
        return once
    raise RequestError(
        f"{len(found)} {'pair' if len(found) == 1 else 'pairs'} of --map cannot both be meant",
        code="conflicting_maps",
        fix="leave one of each pair out; of two rules that fit, the one that names more of the path counts",
        details=found,
    )


def _conflicts(rules: Sequence[Renaming]) -> Iterator[str]:
    for one, other in combinations(rules, 2):
        if one.of is not other.of or (one.rank >= 0 and other.rank >= 0 and one.rank != other.rank):
            continue
        if one.side != other.side:
            if one.new == other.old or other.new == one.old:
                yield f"{one} and {other}: what one leads to, the other leads away from"
        elif one.old == other.old:
            yield f"{one} and {other}: one name, two readings"
        elif one.new == other.new and one.new:
            yield f"{one} and {other}: two names, one reading"
