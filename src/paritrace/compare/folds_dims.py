"""Declared layouts: `--dims` says how tensors lie on ranks (CP-12)."""

import re
from enum import StrEnum
from fnmatch import fnmatchcase

from msgspec import Struct

from paritrace.errors import RequestError

RANKS = "ranks"
"""The axis of all ranks in their order, for runs without a mesh."""

SLOT = "/"
_SIDES = ("baseline", "candidate")
_PART = re.compile(r"(?:(?P<axis>[A-Za-z_][\w.-]*):)?(?P<how>-?\d{1,2}|[RP])")


class How(StrEnum):
    SHARD = "S"
    REPLICATE = "R"
    PARTIAL = "P"


class AxisRule(Struct, frozen=True):
    """What lies along one axis of the ranks; `dim` of the tensor (negative: from the end) where it is sharded."""

    axis: str
    how: How
    dim: int = 0

    def __str__(self) -> str:
        return f"{self.axis}:{self.dim if self.how is How.SHARD else self.how.value}"


class Dims(Struct, frozen=True):
    """One `--dims`: tensors whose name is like `pattern`, on `side` ("": both).

    A tensor at a module is `module/slot`; only a pattern with a slash speaks of those, and of nothing else.
    """

    pattern: str
    rules: tuple[AxisRule, ...]
    side: str = ""

    def __str__(self) -> str:
        return f"{self.side + ':' if self.side else ''}{self.pattern}={','.join(map(str, self.rules))}"

    def covers(self, name: str, side: str) -> bool:
        alike = (SLOT in name) == (SLOT in self.pattern)
        return alike and self.side in ("", side) and fnmatchcase(name, self.pattern)


def parse_dims(text: str) -> Dims:
    """Read `[SIDE:]PATTERN=RULES`; RULES are `AXIS:DIM`, `AXIS:R`, `AXIS:P`, joined by commas; no axis means `ranks`.

    Raises:
        RequestError: Refused, `bad_dims`.
    """
    head, equals, tail = text.rpartition("=")
    side, colon, pattern = head.partition(":")
    if not colon or side not in _SIDES:
        side, pattern = "", head
    found = [_PART.fullmatch(part.strip()) for part in tail.split(",")]
    if not equals or not pattern or any(match is None for match in found):
        raise _bad_dims(text)
    rules = tuple(_rule(match) for match in found if match is not None)
    if len({rule.axis for rule in rules}) != len(rules):
        raise _bad_dims(text)
    return Dims(pattern=pattern, rules=rules, side=side)


def _rule(match: re.Match[str]) -> AxisRule:
    axis, how = match["axis"] or RANKS, match["how"]
    return AxisRule(axis, How(how)) if how in ("R", "P") else AxisRule(axis, How.SHARD, int(how))


def _bad_dims(text: str) -> RequestError:
    return RequestError(
        f"--dims {text!r} is not PATTERN=AXIS:DIM",
        code="bad_dims",
        fix="give for example --dims '*.qkv.weight=tp:0', with R for replicated, P for a pending sum, ranks as an axis",
    )
