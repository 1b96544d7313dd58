"""What a text of NCCL's RAS subsystem reports: the findings of `ncclras`, in its own words: pure (RS-13).

The text has sections, each a title over a line of `=`. Findings stand under Errors and Warnings; the table of
communicators says of each group whether it is OK.
"""

from collections.abc import Sequence

from msgspec import Struct

FINDINGS = ("errors", "warnings")
COMMUNICATORS = "communicators"
FINE = "OK"


class RasReport(Struct, frozen=True):
    """The lines to show, and how many groups of communicators were listed; None where this is no text of `ncclras`."""

    findings: tuple[str, ...]
    num_groups: int
    num_not_ok: int


def ras_report(lines: Sequence[str]) -> RasReport | None:
    """Return what a text reports; None where it has not the sections that `ncclras` writes."""
    sections = _sections(lines)
    if not all(title in sections for title in FINDINGS):
        return None
    groups = [words for line in sections.get(COMMUNICATORS, ()) if _is_row(words := line.split())]
    bad = [words for words in groups if words[-1] != FINE]
    told = [f"communicators of group {words[0]}: {words[-2]}, {words[-1]}" for words in bad]
    told += [line.strip() for title in FINDINGS for line in sections[title] if line.strip()]
    return RasReport(tuple(told), len(groups), len(bad))


def _is_row(words: list[str]) -> bool:
    """Whether these are the words of one group: its number, counts, a status, and OK or its errors."""
    return len(words) >= 4 and words[0].isdigit() and words[1].isdigit() and not words[-1].isdigit()


def _sections(lines: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for number, line in enumerate(lines):
        following = lines[number + 1].strip() if number + 1 < len(lines) else ""
        if line.strip() and following and not following.strip("="):
            title = line.split()[0].rstrip(".").lower()
            current = found.setdefault(title, [])
        elif line.strip().strip("="):
            current.append(line)
    return found
