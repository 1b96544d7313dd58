"""The short way into `paritrace record`: its plain words, read without loading the command line's frame (PF-16).

It accepts only what the frame would read the same way, and nothing that the frame would refuse or explain: for all else
`plain_record` answers None, and the frame of `cli/entry.py` reads the same words.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from paritrace.cli.recorded import Asked
from paritrace.cli.settings_places import NO_SETTINGS_FILE, settings_files

MOST_SECONDS = 1e6  # a longer timeout is for the frame to judge
_OWN_VARIABLES = ("PARITRACE_RECORD_", "_PARITRACE_COMPLETE")


class _NotPlainError(Exception):
    """The words are for the frame."""


def _output(text: str) -> Path:
    if os.path.lexists(text) and not os.access(text, os.R_OK):
        raise _NotPlainError
    return Path(text)


def _timeout(text: str) -> float:
    return _number(text, above=0.0, most=MOST_SECONDS)


def _sample(text: str) -> float:
    seconds = _number(text, above=0.0, most=60.0)
    if seconds < 0.1:
        raise _NotPlainError
    return seconds


def _number(text: str, *, above: float, most: float) -> float:
    if not text.isascii() or not text.replace(".", "", 1).isdigit() or not above < float(text) <= most:
        raise _NotPlainError
    return float(text)


_VALUES: dict[str, tuple[str, Callable[[str], object]]] = {
    "-o": ("output", _output),
    "--output": ("output", _output),
    "--timeout": ("timeout", _timeout),
    "--sample": ("sample", _sample),
    "--title": ("title", str),
}
_FLAGS = {
    "--cgroup": "cgroup",
    "--exclusive": "exclusive",
    "--subreaper": "subreaper",
    "--json": "as_json",
}


def plain_record(words: Sequence[str], environ: Mapping[str, str], *, folder: Path | None) -> Asked | None:
    """Return what `paritrace WORDS` asks for; None where it is not a plain `record`, or something else has a say in it.

    Args:
        environ: a variable of the command sets its options.
        folder: where a settings file of this call would be looked for; None where that directory is gone.
    """
    if not words or words[0] != "record" or any(name.startswith(_OWN_VARIABLES) for name in environ):
        return None
    try:
        asked = _asked(words[1:])
        unread = folder is None or environ.get(NO_SETTINGS_FILE)
        settings = not unread and any(True for _ in settings_files(folder or Path()))
    except (_NotPlainError, OSError):
        return None
    return None if settings else asked


def _asked(words: Sequence[str]) -> Asked:
    given: dict[str, Any] = {}
    left = list(words)
    while left and left[0].startswith("-"):
        word = left.pop(0)
        if word == "--":
            break
        if word in _FLAGS:
            given[_FLAGS[word]] = True
        else:
            name, told, value = word.partition("=") if word.startswith("--") else (word, "", "")
            if name not in _VALUES:
                raise _NotPlainError
            key, read = _VALUES[name]
            given[key] = read(value if told else _next(left))
    if not left or "output" not in given:
        raise _NotPlainError
    return Asked(command=tuple(left), **given)


def _next(left: list[str]) -> str:
    if not left or left[0].startswith("-"):
        raise _NotPlainError
    return left.pop(0)
