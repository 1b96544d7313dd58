"""Prints a screen for a person: with colours on a terminal, as plain text anywhere else (SU-5)."""

import os
import sys
from collections.abc import Mapping
from shutil import get_terminal_size
from typing import TextIO

from paritrace.cli.output import write_text


def write_screen(screen: str, *, stream: TextIO | None = None, environment: Mapping[str, str] = os.environ) -> None:
    """Print a screen on stdout; without colours when it is no terminal or `NO_COLOR` is set."""
    target = sys.stdout if stream is None else stream
    if not takes_colours(target, environment):
        write_text(screen.rstrip("\n"))
        return
    from paritrace.reports.painting import folded, print_painted  # loaded only where something is drawn

    print_painted(folded(screen, width=get_terminal_size().columns), stream=target)


def takes_colours(stream: TextIO, environment: Mapping[str, str]) -> bool:
    """Return whether colours are wanted there (https://no-color.org: any value that is not empty)."""
    return stream.isatty() and not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"
