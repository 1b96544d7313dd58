"""Runs one child process to its end, with a deadline, and hands back its status and what it printed."""

import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from paritrace.errors import HostError, Outcome


class Finished(Struct, frozen=True):
    """A child process that has ended. `status` is negative when a signal ended it."""

    status: int
    stdout: str
    stderr: str
    seconds: float


def run_child(
    command: Sequence[str], *, directory: Path, environment: Mapping[str, str], deadline_seconds: float
) -> Finished:
    """Run `command` in `directory` and wait for its end.

    Raises HostError (Failed) when it has not ended after `deadline_seconds`: it is killed then.
    """
    started = time.monotonic()
    try:
        done = subprocess.run(  # noqa: S603  the command is built by the caller, from no outside text
            list(command),
            cwd=directory,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            timeout=deadline_seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        raise HostError(
            f"`{' '.join(command)}` had not ended after {deadline_seconds:.0f} s and was killed",
            code="child_too_slow",
            fix="run it by hand to see where it waits, on a machine with less other load",
            outcome=Outcome.FAILED,
        ) from late
    return Finished(status=done.returncode, stdout=done.stdout, stderr=done.stderr, seconds=time.monotonic() - started)
