"""The functions that rewritten code calls by name: builtins, from the first rewritten file on and for good.

Until an observer listens, and after it has stopped, they hand through what they are given. They stay in place when a
capture ends, since code that was rewritten stays loaded.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any, NamedTuple

from paritrace.capture.rewriting.tree import ARGUMENT, FUNCTION, LAST_ARGUMENT, RESULT


class Probes(NamedTuple):
    """What stands behind the four names of `tree.PROBES`; each returns its last argument."""

    function: Callable[[int, Any], Any]
    argument: Callable[[int, str | int, Any], Any]
    last_argument: Callable[[int, str | int, Any], Any]
    result: Callable[[int, Any], Any]


def listen(probes: Probes) -> None:
    """Have rewritten code call these from now on."""
    for name, probe in zip((FUNCTION, ARGUMENT, LAST_ARGUMENT, RESULT), probes, strict=True):
        setattr(builtins, name, probe)


def be_silent() -> None:
    """Have rewritten code call what does nothing."""
    listen(Probes(_through, _through_argument, _through_argument, _through))


def _through(_: int, value: Any) -> Any:
    return value


def _through_argument(_: int, __: str | int, value: Any) -> Any:
    return value
