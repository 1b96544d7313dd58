"""Attempts at tasks under several configurations: what they used, what was judged, what is not known.

`load`, `summarize`, `compare` and `explain` give the records that `paritrace attempts` prints (AT-19). `record_look`
keeps that results were looked at, as the command does (AT-14).
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paritrace.attempts.api import compare as compare
    from paritrace.attempts.api import explain as explain
    from paritrace.attempts.api import load as load
    from paritrace.attempts.api import record_look as record_look
    from paritrace.attempts.api import summarize as summarize

__all__ = ["compare", "explain", "load", "record_look", "summarize"]


def __getattr__(name: str) -> object:
    """Public names are imported when they are first used: the records alone cost no SciPy."""
    if name in __all__:
        return vars(import_module("paritrace.attempts.api"))[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
