"""Text of a run made harmless for a terminal: no control character, no endless name, no markup (SU-12).

Names in a run come from whoever wrote the workload. What is not printable is shown as its escape, so that a screen
never moves the cursor, turns text around or claims a line that the report did not write.
"""

from itertools import takewhile

from rich.cells import cell_len, chop_cells

ELLIPSIS = "…"
CONTEXT_COLUMNS = 10  # what both sides share before the place where they part


def harmless(text: str, /) -> str:
    """Returns `text` with everything that is not printable written as an escape (`\\x1b`, `\\u202e`, `\\n`)."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escape(char) for char in text)


def _escape(char: str, /) -> str:
    return char.encode("unicode_escape", "surrogatepass").decode("ascii")


def width_of(text: str, /) -> int:
    """Returns the columns `text` takes: terminal cells, and never less than its characters (combining marks)."""
    return max(cell_len(text), len(text))


def shorten_text(text: str, /, *, most: int) -> str:
    """Returns `text` in at most `most` characters, of any width: of a longer one the beginning and the end."""
    if len(text) <= most:
        return text
    head = (most - 1) // 3
    return f"{text[:head]}{ELLIPSIS}{text[len(text) - (most - 1 - head) :]}"


def shorten(text: str, /, *, width: int) -> str:
    """Returns harmless `text` in at most `width` columns; of a longer one the beginning and the end are kept.

    The end keeps two thirds, since the last parts of a module path or file tell more than the first.
    """
    safe = harmless(text)
    if width_of(safe) <= width:
        return safe
    if width <= 1:
        return ELLIPSIS[:width]
    head = (width - 1) // 3
    return _first_columns(safe, head) + ELLIPSIS + _last_columns(safe, width - 1 - head)


def from_difference(first: str, second: str, /, *, width: int) -> tuple[str, str]:
    """Returns both texts harmless; where both are wider than `width`, from shortly before the place where they part."""
    first, second = harmless(first), harmless(second)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))
    start = same - CONTEXT_COLUMNS
    if start <= 0 or min(width_of(first), width_of(second)) <= width:
        return first, second
    return ELLIPSIS + first[start:], ELLIPSIS + second[start:]


def shorten_path(path: str, /, *, width: int) -> str:
    """Returns a harmless path in at most `width` columns; of a longer one the last parts, after `…/`."""
    safe = harmless(path)
    while width_of(safe) > width and "/" in safe.removeprefix(f"{ELLIPSIS}/"):
        safe = f"{ELLIPSIS}/{safe.removeprefix(f'{ELLIPSIS}/').partition('/')[2]}"
    return shorten(safe, width=width)


def cut(text: str, /, *, width: int) -> str:
    """Returns harmless `text` in at most `width` columns; of a longer one the beginning is kept."""
    safe = harmless(text)
    if width_of(safe) <= width:
        return safe
    return _first_columns(safe, width - 1) + ELLIPSIS if width > 0 else ""


def wrap(text: str, /, *, width: int) -> list[str]:
    """Returns the lines of harmless `text`, broken at spaces, each in at most `width` columns."""
    lines: list[str] = []
    current = ""
    for word in harmless(text).split(" "):
        for piece in _pieces(word, width):
            joined = f"{current} {piece}" if current else piece
            if current and width_of(joined) > width:
                lines.append(current)
                current = piece
            else:
                current = joined
    return [*lines, current] if current else lines


def _pieces(word: str, width: int) -> list[str]:
    if width_of(word) <= width:
        return [word]
    pieces: list[str] = []
    for piece in chop_cells(word, width):
        pieces.extend(piece[start : start + width] for start in range(0, len(piece), width))
    return pieces


def _first_columns(text: str, columns: int) -> str:
    end = min(columns, len(text))
    while end > 0 and cell_len(text[:end]) > columns:
        end -= 1
    return text[:end]


def _last_columns(text: str, columns: int) -> str:
    start = max(0, len(text) - columns)
    while start < len(text) and cell_len(text[start:]) > columns:
        start += 1
    return text[start:]
