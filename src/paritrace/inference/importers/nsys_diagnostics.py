"""What Nsight Systems says of its own collection, in its diagnostics (IN-11)."""

import re
from collections.abc import Iterable

from msgspec import Struct

from paritrace.inference.vocabulary import LossReason, LossStatus

_COLLECTED = re.compile(
    r"Number of (?P<what>[\w ]{1,60}?) events (?P<verb>collected|produced): *\t? *(?P<number>\d{1,18})"
)
_LOST = re.compile(
    r"(?P<number>\d{1,18})\s+(?:[\w/]+\s+){0,4}(?:were |was |have been )?(?:dropped|lost|discarded|not collected)",
    re.IGNORECASE,
)
_SAYS_LOST = re.compile(
    r"dropped|\blost\b|discarded|not all|might be missing|incomplete|buffers? (?:is |are )?full", re.IGNORECASE
)
WARNING, FAULT = 2, 3  # of the column `severity`; 1 is information
_SEVERITIES = {WARNING: "warning", FAULT: "error"}
_MOST_TEXTS = 1000


class Diagnostic(Struct, frozen=True):
    """One line of the profiler. `severity`: 1 information, 2 warning, 3 error, None where it is not told."""

    severity: int | None
    text: str


class Told(Struct, frozen=True):
    """A loss that the profiler tells. `count` None: it gives no number."""

    what: str
    count: int | None
    reason: LossReason
    status: LossStatus


class Diagnosed(Struct, frozen=True):
    """What the diagnostics say.

    Attributes:
        losses: in the order of the lines.
        counts: how many events of what it collected or produced, in its own words.
        warnings: lines that are warnings or errors, the first of them, each with its severity.
    """

    losses: tuple[Told, ...]
    counts: dict[str, int]
    warnings: tuple[str, ...]


def diagnosed(lines: Iterable[Diagnostic], /) -> Diagnosed:
    """Read the lines; one that gives a number of lost events is a loss of as many, also when it is 0."""
    losses: list[Told] = []
    counts: dict[str, int] = {}
    warnings: list[str] = []
    for line in lines:
        for found in _COLLECTED.finditer(line.text):
            counts[f"{found['what']} events {found['verb']}"] = int(found["number"])
        lost = _LOST.search(line.text)
        if lost is not None:
            number = int(lost["number"])
            status = LossStatus.REPORTED if number else LossStatus.ZERO_REPORTED
            losses.append(Told(line.text, number, LossReason.DROPPED, status))
        elif _SAYS_LOST.search(line.text):
            losses.append(Told(line.text, None, LossReason.UNKNOWN, LossStatus.REPORTED))
        if line.severity in _SEVERITIES and len(warnings) < _MOST_TEXTS:
            warnings.append(f"{_SEVERITIES[line.severity]}: {line.text}")
    return Diagnosed(losses=tuple(losses), counts=counts, warnings=tuple(warnings))
