"""Progress of a long command on stderr: drawn on a terminal, a plain line now and then everywhere else (SU-5)."""

import os
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import TextIO

from paritrace.cli.output import note

Stage = Callable[[str], None]

PLAIN_SECONDS = 30.0  # a job's log stays readable, and whoever watches it knows within half a minute that it lives


@contextmanager
def progress(*, stream: TextIO | None = None, environment: Mapping[str, str] = os.environ) -> Generator[Stage]:
    """Yield a function that is told what is being done now: `stage("reading the baseline")`.

    Only rank 0 of a launcher says anything. Nothing is ever written to stdout.
    """
    target: TextIO = sys.stderr if stream is None else stream
    if environment.get("RANK", "0") != "0":
        yield lambda _text: None
    elif target.isatty() and not environment.get("CI") and environment.get("TERM") != "dumb":
        with _drawn(target) as stage:
            yield stage
    else:
        with plain_lines(note) as stage:
            yield stage


@contextmanager
def _drawn(stream: TextIO) -> Generator[Stage]:
    from rich.console import Console  # loaded only where something is drawn

    with Console(file=stream).status("") as status:
        yield status.update


@contextmanager
def plain_lines(write: Callable[[str], None], *, every_seconds: float = PLAIN_SECONDS) -> Generator[Stage]:
    """Write "STAGE (N s)" every so many seconds while the block runs; nothing at all when it is quicker."""
    current = ["working"]
    ended = threading.Event()
    started = time.monotonic()

    def report() -> None:
        while not ended.wait(every_seconds):
            write(f"{current[0]} ({time.monotonic() - started:.0f} s)")

    def stage(text: str) -> None:
        current[0] = text

    reporter = threading.Thread(target=report, name="paritrace-progress", daemon=True)
    reporter.start()
    try:
        yield stage
    finally:
        ended.set()
        reporter.join()
