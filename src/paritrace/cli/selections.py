"""Reads `--steps A:B` and `--ranks 0,1` of the commands that read runs."""

import re

from paritrace.errors import RequestError

_STEPS = re.compile(r"(?P<first>\d{0,18})(?P<range>:(?P<end>\d{0,18}))?")


def parse_steps(text: str | None) -> tuple[int, int | None] | None:
    """Return the half-open range of `A:B`, `A:`, `:B` or `N` (that step alone); None for all.

    Raises:
        RequestError: Refused, `bad_steps`.
    """
    if text is None:
        return None
    match = _STEPS.fullmatch(text)
    if match is None or not text.isascii() or text in ("", ":"):
        raise _bad_steps(text)
    first = int(match["first"] or "0")
    end = (int(match["end"]) if match["end"] else None) if match["range"] else first + 1
    if end is not None and end <= first:
        raise _bad_steps(text)
    return first, end


def _bad_steps(text: str) -> RequestError:
    return RequestError(
        f"--steps {text!r} is not A:B with A < B", code="bad_steps", fix="give for example --steps 0:3, half-open"
    )


def parse_ranks(text: str | None) -> tuple[int, ...] | None:
    """Return the ranks of `0,1`; None for all.

    Raises:
        RequestError: Refused, `bad_ranks`.
    """
    if text is None or text == "all":
        return None
    parts = text.split(",")
    if not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        raise RequestError(
            f"--ranks {text!r} is not a list of ranks", code="bad_ranks", fix="give for example --ranks 0,1 or all"
        )
    return tuple(sorted({int(part) for part in parts}))
