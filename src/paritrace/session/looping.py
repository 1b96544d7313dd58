"""`paritrace.steps`: names the steps of a loop and, where PARITRACE_SESSION names a session, obeys it (SE-1a)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from paritrace.capture import api
from paritrace.errors import RequestError

if TYPE_CHECKING:
    from paritrace.session.rank.attached import AttachedLoop, Settable

SESSION = "PARITRACE_SESSION"
Item = TypeVar("Item")

_loops: dict[tuple[int, str], AttachedLoop | None] = {}  # by process and directory: dialled once, whatever came of it


def steps(
    loader: Iterable[Item],
    *,
    start: int = 0,
    config: Mapping[str, Any] | None = None,
    configure: Callable[[Mapping[str, Any]], None] | None = None,
) -> Iterator[Item]:
    """Iterate over `loader`, naming the steps `start`, `start + 1`, …

    With the environment variable `PARITRACE_SESSION=DIR` the process joins the session whose coordinator
    (`paritrace session start DIR --engine attach --ranks N`) takes ranks in DIR, as the rank that its launcher made it.
    Between two steps the session can then stop it, capture the next ones and let it go on; what cannot be reached or
    is lost is said on standard error, and the loop runs on without it. Steps of a session go up: where a second loop
    begins at a number that was had already, they are counted on from the last; give `start` to name them yourself.

    Args:
        loader: what is iterated over.
        start: the number of the first step.
        config: values of this loop that a session may change between two steps, each with its present value.
        configure: called with the changed ones on every rank, between the same two steps, in the thread that iterates.

    Raises:
        RequestError: Refused: `config_without_configure`, one of the two was given alone.
    """
    if (config is None) is not (configure is None):
        raise RequestError(
            "`config` and `configure` go together: values that may change, and what changes them",
            code="config_without_configure",
            fix="give both, or neither",
        )
    settable = None if config is None or configure is None else (dict(config), configure)
    return _steps(loader, start, settable)


def _steps(loader: Iterable[Item], start: int, settable: Settable | None) -> Iterator[Item]:
    directory = os.environ.get(SESSION, "")
    loop = _loop_of(directory) if directory else None
    if loop is not None:
        loop.begins(start, settable)
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
