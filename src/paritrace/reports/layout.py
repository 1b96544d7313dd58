"""A screen of sections, fitted into a number of lines and columns; what is left out is counted (SU-7)."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from paritrace.reports.harmless import cut, harmless, shorten, wrap

WIDTH = 100
HEIGHT = 34
MARGIN = 12  # columns of the anchor: `[not_seen]` and two spaces
CONTENT = WIDTH - MARGIN


class Section(Struct, frozen=True):
    """Lines under one anchor: at most `most` of them, and `keep` of them however full the screen is."""

    anchor: str
    lines: tuple[str, ...]
    keep: int = 1
    most: int = HEIGHT
    spaced: bool = False  # a blank line before it, while there is room
    bare: bool = False  # the lines bring their own margin and anchors


def paragraph(text: str, /, *, most: int) -> tuple[str, ...]:
    """Returns `text` wrapped beside the margin in at most `most` lines; a longer text ends in an ellipsis."""
    lines = wrap(text, width=CONTENT)
    if len(lines) <= most:
        return tuple(lines)
    return (*lines[: most - 1], cut(" ".join(lines[most - 1 :]), width=CONTENT))


def shortened(lines: Iterable[str], /) -> tuple[str, ...]:
    """Returns each line in the columns beside the margin; of a longer one the beginning and the end."""
    return tuple(shorten(line, width=CONTENT) for line in lines)


def next_step(command: str, /) -> tuple[str, ...]:
    """Returns the command that shows more, whole, on a line of its own that no width cuts: it is there to be copied."""
    return ("[next]".ljust(MARGIN) + harmless(command),) if command else ()


def fit(sections: Sequence[Section], /, *, height: int = HEIGHT, closing: str = "") -> list[str]:
    """Returns the screen's lines: at most `height`, each at most WIDTH columns.

    Blank lines give way first, from the end; then the longest sections; then whole sections from the end. A section
    that was cut says how many lines are left out and how to see them: by `closing`, or by explain with its anchor.
    """
    present = [section for section in sections if section.lines]
    allowed = _allowances(present, height=height)
    shown = [(section, count) for section, count in zip(present, allowed, strict=True) if count > 0]
    room = height - sum(count for _, count in shown)
    screen: list[str] = []
    for section, count in shown:
        if section.spaced and room > 0:
            screen.append("")
            room -= 1
        screen += _drawn(section, count=count, closing=closing)
    return screen


def _allowances(sections: Sequence[Section], *, height: int) -> list[int]:
    """Returns how many lines each section gets."""
    allowed = [min(len(section.lines), section.most) for section in sections]
    while sum(allowed) > height:
        spare = [count - section.keep for section, count in zip(sections, allowed, strict=True)]
        if max(spare) > 0:
            allowed[max(range(len(spare)), key=lambda index: (spare[index], index))] -= 1
        else:
            allowed[max(index for index, count in enumerate(allowed) if count > 0)] -= 1
    return allowed


def _drawn(section: Section, *, count: int, closing: str) -> list[str]:
    drawn: list[str] = []
    label = "" if section.bare else f"[{section.anchor}]"
    for line in _shown_lines(section, count=count, closing=closing):
        margin = "" if section.bare else f"{label} ".ljust(MARGIN)
        drawn.append(cut(margin + line, width=WIDTH).rstrip())
        label = ""
    return drawn


def _shown_lines(section: Section, *, count: int, closing: str) -> tuple[str, ...]:
    left_out = len(section.lines) - count
    if left_out == 0 or count == 1:
        return section.lines[:count]
    last = f"… {left_out + 1:,} {closing or f'more: paritrace explain {section.anchor}'}"
    return (*section.lines[: count - 1], last if not section.bare else " " * MARGIN + last)
