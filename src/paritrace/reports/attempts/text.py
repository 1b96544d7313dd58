"""Parts of a report of attempts as plain text (AT-17)."""

from collections.abc import Iterable

from paritrace.reports.attempts.sections import Part
from paritrace.reports.harmless import wrap

WIDTH = 100
NAME_WIDTH = 26


def text_of(parts: Iterable[Part]) -> str:
    """Returns a screen: a heading for each part, names on the left, what is said of them on the right."""
    lines: list[str] = []
    for part in parts:
        if lines and part.level < 3:
            lines.append("")
        lines += _heading(part)
        for name, said in part.rows:
            lines += _row(name, said)
        for note in part.notes:
            first, *rest = wrap(note, width=WIDTH - 4)
            lines += [f"  - {first}", *(f"    {line}" for line in rest)]
    return "\n".join(lines) + "\n"


def _heading(part: Part) -> list[str]:
    if part.level == 1:
        return [part.title, "=" * min(len(part.title), WIDTH)]
    return [part.title, "-" * min(len(part.title), WIDTH)] if part.level == 2 else [f" {part.title}"]


def _row(name: str, said: str) -> list[str]:
    first, *rest = wrap(said, width=WIDTH - NAME_WIDTH - 2) or [""]
    left = f"  {name}"
    lines = [f"{left:{NAME_WIDTH}}{first}"] if len(left) < NAME_WIDTH else [left, f"{'':{NAME_WIDTH}}{first}"]
    return lines + [f"{'':{NAME_WIDTH}}{line}" for line in rest]
