"""Captures in children forked from this process, which has imported torch already: the command without its start-up.

Each capture is a process of its own that runs `paritrace run …` as the console script does, to its exit callbacks. A
test holds such a capture to an ordinary one, bit for bit.
"""

import atexit
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

from benchmarks.warm.program import end

DEADLINE_SECONDS = 120  # a capture takes one or two: sixty times that means that it hangs
LOOK_SECONDS = 0.01
# What a training imports while it runs, and what a capture does.
NEEDED = ("torch", "torch._dynamo", "torch.utils.checkpoint", "paritrace.cli.run", "paritrace.cli.entry", "tomllib")
PACKAGES = ("paritrace.capture", "paritrace.runs", "paritrace.evidence", "paritrace.process", "paritrace.files")
OPTIONAL = frozenset({"paritrace.evidence.compiled"})  # needs numba, and is loaded only for large tensors


class CaptureFailedError(Exception):
    """A capture ended with another status than 0, or not at all."""


def warm_up(*more: str) -> None:
    """Import what captures need, and `more`, and leave it out of what they look through.

    Raises:
        RuntimeError: another thread runs; a fork would lose it, and the locks that it holds would stay held.
    """
    for name in (*NEEDED, *more):
        import_module(name)
    for package in PACKAGES:
        for found in walk_packages(import_module(package).__path__, f"{package}."):
            if found.name not in OPTIONAL:
                import_module(found.name)
    if threading.active_count() > 1:
        raise RuntimeError("a process with threads cannot be forked safely")
    gc.collect()
    gc.freeze()


def capture(
    arguments: Sequence[str], *, directory: Path, errors: Path, ranks: Sequence[Mapping[str, str]] = ({},)
) -> float:
    """Run `paritrace ARGUMENTS` in a forked child, or in one for each rank's environment; returns the seconds it took.

    Raises:
        CaptureFailedError: one ended with another status than 0; what it wrote on stderr stands in `errors`.
    """
    started = time.monotonic()
    children = [_forked(arguments, directory, errors.with_suffix(f".{rank}"), more) for rank, more in enumerate(ranks)]
    statuses = [_waited(child, until=started + DEADLINE_SECONDS) for child in children]
    for rank, status in enumerate(statuses):
        if status:
            told = errors.with_suffix(f".{rank}").read_text(encoding="utf-8", errors="replace")
            raise CaptureFailedError(f"paritrace {' '.join(arguments)} ended with {statuses}:\n{told[-2000:]}")
    return time.monotonic() - started


def _forked(arguments: Sequence[str], directory: Path, errors: Path, environment: Mapping[str, str]) -> int:
    errors.touch()
    child = os.fork()
    if child == 0:
        from paritrace.cli.entry import main

        try:
            os.environ.update(environment)
            _redirect(errors)
            os.chdir(directory)
            atexit._clear()
            end(lambda: main(list(arguments)))
        finally:
            os._exit(1)
    return child


def _waited(child: int, *, until: float) -> int:
    """The exit status of the child, which is killed at the deadline."""
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > until:
            os.kill(child, signal.SIGKILL)
        time.sleep(LOOK_SECONDS)


def _redirect(errors: Path) -> None:
    """Standard output goes nowhere, standard error into a file."""
    sys.stdout.flush()
    sys.stderr.flush()
    nowhere = os.open(os.devnull, os.O_RDWR)
    told = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    for target, source in ((0, nowhere), (1, nowhere), (2, told)):
        os.dup2(source, target)
