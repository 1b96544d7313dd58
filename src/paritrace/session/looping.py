"""`paritrace.steps`: names the steps of a loop and, where PARITRACE_SESSION names a session, obeys it (SE-1a)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from paritrace.capture import api

if TYPE_CHECKING:
    from paritrace.session.rank.attached import AttachedLoop

SESSION = "PARITRACE_SESSION"
Item = TypeVar("Item")

_loops: dict[tuple[int, str], AttachedLoop | None] = {}  # by process and directory: dialled once, whatever came of it


def steps(loader: Iterable[Item], *, start: int = 0) -> Iterator[Item]:
    """Iterate over `loader`, naming the steps `start`, `start + 1`, …

    With the environment variable `PARITRACE_SESSION=DIR` the process joins the session whose coordinator
    (`paritrace session start DIR --engine attach --ranks N`) takes ranks in DIR, as the rank that its launcher made it.
    Between two steps the session can then stop it, capture the next ones and let it go on; what cannot be reached or
    is lost is said on standard error, and the loop runs on without it. Steps of a session go up: where a second loop
    begins at a number that was had already, they are counted on from the last; give `start` to name them yourself.
    """
    directory = os.environ.get(SESSION, "")
    loop = _loop_of(directory) if directory else None
    if loop is not None:
        loop.begins(start)
    for number, item in enumerate(loader, start):
        if loop is None or not loop.boundary(number):
            api.step(number)
        yield item


def _loop_of(directory: str) -> AttachedLoop | None:
    key = os.getpid(), directory
    if key not in _loops:
        from paritrace.session.rank.attached import attached  # only where there is a session

        _loops[key] = attached(Path(directory))
    return _loops[key]
