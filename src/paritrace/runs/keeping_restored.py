"""Whether restored stores stay, and which did: asked for by a command, heeded when a run is opened (ST-25)."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

_ASKED: ContextVar[list[Path] | None] = ContextVar("keep_restored", default=None)


@contextmanager
def keep_restored() -> Generator[list[Path], None, None]:
    """While this is entered, stores that are opened stay restored; yields the list of where, which grows."""
    kept: list[Path] = []
    token = _ASKED.set(kept)
    try:
        yield kept
    finally:
        _ASKED.reset(token)


def kept_restored() -> list[Path] | None:
    """Return the list to add to; None where restored stores are to be removed again."""
    return _ASKED.get()
