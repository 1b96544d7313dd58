"""Captures by warm interpreters (`benchmarks.warm`): the command line's own, without its start-up (CP-18)."""

import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from subprocess import DEVNULL

from benchmarks import warm

DEADLINE_SECONDS = 120  # a capture takes one or two: sixty times that means that it hangs


class CaptureFailedError(Exception):
    """A capture ended with another status than 0, or not at all."""


def capture(
    arguments: Sequence[str], *, directory: Path, errors: Path, ranks: Sequence[Mapping[str, str]] = ({},)
) -> float:
    """Run `paritrace ARGUMENTS`, or one for each rank's environment; returns the seconds it took.

    Raises:
        CaptureFailedError: one ended with another status than 0; what it wrote on stderr stands in `errors`.
    """
    until = time.monotonic() + DEADLINE_SECONDS
    command = [warm.python(), "-m", "paritrace", *arguments]
    started = time.monotonic()
    told = [errors.with_suffix(f".{rank}") for rank in range(len(ranks))]
    with ExitStack() as stack:
        children: list[subprocess.Popen[bytes]] = []
        for path, more in zip(told, ranks, strict=True):
            log = stack.enter_context(path.open("wb"))
            environment = warm.environment(**more)
            child = subprocess.Popen(command, cwd=directory, env=environment, stdin=DEVNULL, stdout=DEVNULL, stderr=log)
            children.append(child)
        statuses = [_waited(child, until=until) for child in children]
    for path, status in zip(told, statuses, strict=True):
        if status:
            text = path.read_text(encoding="utf-8", errors="replace")
            raise CaptureFailedError(f"paritrace {' '.join(arguments)} ended with {statuses}:\n{text[-2000:]}")
    return time.monotonic() - started


def _waited(child: "subprocess.Popen[bytes]", *, until: float) -> int:
    """The exit status of the child, which is killed at the deadline."""
    try:
        return child.wait(timeout=max(until - time.monotonic(), 0.0))
    except subprocess.TimeoutExpired:
        child.kill()
        return child.wait()
