"""Colours a plain screen for a terminal; the text stays the same to the letter."""

from typing import TextIO

from rich.console import Console
from rich.text import Text

from paritrace.reports.harmless import width_of
from paritrace.reports.layout import MARGIN

NARROWEST = 20  # columns of text beside the margin that a line keeps however narrow the terminal

ANCHOR = r"(?m)^\[[^\]\s]{1,40}\]"
FIRST_LINE = r"\A[^\n]*"
BEYOND = r"(?<=[a-z1] )X(?=\s|$)"
AGREES = r"(?<=[a-z1] )=(?=\s|$)"
UNDETERMINED = r"(?<=[a-z1] )\?(?=\s|$)"
FAIL = r"(?<=\s)FAIL(?=\s)"
LOOK_AT = r"first difference:[^\n]*"


def folded(screen: str, /, *, width: int) -> str:
    """Returns a screen for a narrower terminal: what does not fit on a line goes on below it, beside the margin."""
    room = max(width, MARGIN + NARROWEST)
    lines: list[str] = []
    for line in screen.splitlines():
        rest = line
        while width_of(rest) > room:
            space = rest.rfind(" ", MARGIN + 1, room)
            end = space if space > 0 else room
            lines.append(rest[:end].rstrip())
            rest = " " * MARGIN + rest[end:].lstrip()
        lines.append(rest)
    return "\n".join(lines) + "\n"


def print_painted(screen: str, /, *, stream: TextIO) -> None:
    """Prints a screen with colours and emphasis on a terminal.

    `NO_COLOR` is honoured by rich: emphasis stays, colours go.
    """
    text = Text(screen.rstrip("\n"))
    text.highlight_regex(FIRST_LINE, "bold")
    text.highlight_regex(LOOK_AT, "bold")
    text.highlight_regex(ANCHOR, "cyan")
    text.highlight_regex(BEYOND, "bold red")
    text.highlight_regex(FAIL, "bold red")
    text.highlight_regex(AGREES, "green")
    text.highlight_regex(UNDETERMINED, "yellow")
    Console(file=stream, highlight=False, markup=False, emoji=False).print(text, soft_wrap=True)
