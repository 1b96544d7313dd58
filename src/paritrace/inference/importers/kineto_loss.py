"""What a profiler says of its own losses, in the INFO, WARNING and ERROR lines of its trace (IN-10)."""

import re
from collections.abc import Mapping
from typing import cast

from msgspec import Struct

from paritrace.inference.vocabulary import LossReason, LossStatus

LEVELS = ("INFO", "WARNING", "ERROR")
_COUNTS = re.compile(r"Record counts:(?P<counts>.*)", re.DOTALL)
_COUNT = re.compile(r"(?P<name>[^,=]*[^,=\s])\s*=\s*(?P<number>\d{1,18})(?![\d.])")
_DROPPED = re.compile(
    r"(?P<number>\d{1,18})\s+(?:activity\s+|CUPTI\s+|GPU\s+)*records?\s+(?:were\s+)?dropped", re.IGNORECASE
)
_STOPPED = re.compile(
    r"CUPTI (?:has )?(?:been )?stopped early(?! ?\?)|[Bb]uffer size limit|out of GPU buffers", re.IGNORECASE
)
_MOST_LINES = 1000

_REASONS = {
    "out-of-range": LossReason.OUT_OF_RANGE,
    "blocklisted runtime": LossReason.BLOCKLISTED,
    "cupti stopped early?": LossReason.STOPPED_EARLY,
}


class Told(Struct, frozen=True):
    """One number that the profiler gives. `what`: its own word for it. Out-of-range records are device work lost."""

    what: str
    count: int
    reason: LossReason

    @property
    def status(self) -> LossStatus:
        """Whether it speaks of a loss."""
        return LossStatus.REPORTED if self.count else LossStatus.ZERO_REPORTED


class Losses(Struct, frozen=True):
    """What a trace tells of losses.

    Attributes:
        told: numbers in the order of the text; of two lines with counts, both.
        record_counts: the text of the last line with counts, "" where there is none.
        warnings: lines that are warnings or errors, the first of them.
        lines: how many lines there are of each level.
    """

    told: tuple[Told, ...]
    record_counts: str
    warnings: tuple[str, ...]
    lines: dict[str, int]

    @property
    def status(self) -> LossStatus:
        """Reported where records are said to be missing; what was meant to be left out is no loss."""
        meant = [one for one in self.told if one.reason is not LossReason.BLOCKLISTED]
        if any(one.count for one in meant):
            return LossStatus.REPORTED
        return LossStatus.ZERO_REPORTED if meant else LossStatus.NOT_REPORTED


def losses_of(members: Mapping[str, object], /) -> Losses:
    """Read the lines that stand beside the events; what is no list of text is no line."""
    lines = {level: _lines(members.get(level)) for level in LEVELS}
    told: list[Told] = []
    counts = ""
    for line in (line for level in LEVELS for line in lines[level]):
        found = _COUNTS.search(line)
        if found is not None:
            counts = found["counts"].strip()
            told += (_counted(match["name"].strip(), int(match["number"])) for match in _COUNT.finditer(counts))
            continue
        dropped = _DROPPED.search(line)
        if dropped is not None:
            told.append(Told("activity records", int(dropped["number"]), LossReason.DROPPED))
        elif _STOPPED.search(line):
            told.append(Told("CUPTI stopped early", 1, LossReason.STOPPED_EARLY))
    return Losses(
        told=tuple(told),
        record_counts=counts,
        warnings=tuple(line for level in LEVELS[1:] for line in lines[level])[:_MOST_LINES],
        lines={level: len(found) for level, found in lines.items() if found},
    )


def _counted(name: str, number: int) -> Told:
    return Told(name, number, _REASONS.get(name.lower(), LossReason.DROPPED))


def _lines(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list):
        return []
    return [line for line in cast("list[object]", value) if isinstance(line, str)]
