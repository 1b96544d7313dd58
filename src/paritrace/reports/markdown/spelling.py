"""Text of a run made harmless for Markdown: no markup, mention, link, formula or cell of its own (SU-12): pure."""

import re
from collections.abc import Iterable, Sequence

from paritrace.reports.harmless import harmless

BREAK = "&#8203;"  # a zero-width space: no mention, issue number, address or emoji is read across it
LONGEST = 400  # characters of one piece
_MARKUP = re.compile(r"[\\`*_\[\]~|$]")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_JOINED = re.compile(r"@|#(?=\w)|:(?=//)|(?<=\b[wW]{3})\.|\b[gG][hH](?=-\d)|:(?=[\w+-]+:)|(?<=[0-9a-f]{7})(?=[0-9a-f])")
_AT_BEGIN = re.compile(r"^(\s*)([-+#=>]|\d+[.)](?=\s))")


def plain(text: str, /, *, longest: int = LONGEST) -> str:
    """Returns text that reads in Markdown as it is written: one line, nothing of it is markup."""
    escaped = _MARKUP.sub(lambda found: f"\\{found[0]}", _bounded(text, longest).translate(_ENTITIES))
    joined = _JOINED.sub(lambda found: f"{found[0]}{BREAK}", escaped)
    return _AT_BEGIN.sub(lambda found: f"{found[1]}{BREAK}{found[2]}", joined)


def code(text: str, /, *, longest: int = LONGEST) -> str:
    """Returns text as a code span that nothing in it can end; also in a table."""
    shown = _bounded(text, longest).replace("|", "\\|") or " "
    fence = "`" * (_longest_run(shown) + 1)
    pad = " " if shown[0] == "`" or shown[-1] == "`" or shown != shown.strip() else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def fenced(lines: Iterable[str], /, *, language: str = "text") -> str:
    """Returns lines as a block of code that nothing in them can end."""
    shown = [_bounded(line, LONGEST) for line in lines]
    fence = "`" * max(3, 1 + max((_longest_run(line) for line in shown), default=0))
    return "\n".join((f"{fence}{language}", *shown, fence))


def table(head: Sequence[str], rows: Iterable[Sequence[str]], /) -> str:
    """Returns a table of cells that are Markdown already."""
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(lines)


def _bounded(text: str, longest: int) -> str:
    safe = harmless(text)
    return safe if len(safe) <= longest else f"{safe[:longest]}… ({len(safe):,} characters)"


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall(r"`+", text)), default=0)
