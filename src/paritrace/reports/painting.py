"""Colours a plain screen for a terminal; the text stays the same to the letter."""

from typing import TextIO

from rich.console import Console
from rich.text import Text

ANCHOR = r"(?m)^\[[^\]\s]{1,40}\]"
FIRST_LINE = r"\A[^\n]*"
BEYOND = r"(?<=[a-z1] )X(?=\s|$)"
AGREES = r"(?<=[a-z1] )=(?=\s|$)"
UNDETERMINED = r"(?<=[a-z1] )\?(?=\s|$)"
FAIL = r"(?<=\s)FAIL(?=\s)"
LOOK_AT = r"first difference:[^\n]*"


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
