"""Runs one command to its end with a deadline, its output in a file, and ends all that it started when it has to."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import IO

from msgspec import Struct

from paritrace.errors import HostError, Outcome

GRACE_SECONDS = 10.0  # a workload that handles SIGTERM writes a last record; torchrun takes a few seconds for its ranks
POLL_SECONDS = 0.05  # how often a group that was told to end is looked at
ENDING = (signal.SIGTERM, signal.SIGHUP)


class Logged(Struct, frozen=True):
    """A command that has ended. `status` is negative when a signal ended it."""

    status: int
    seconds: float


def run_logged(
    command: Sequence[str],
    *,
    directory: Path,
    environment: Mapping[str, str],
    log: IO[bytes],
    deadline_seconds: float,
) -> Logged:
    """Run `command` in `directory`, standard output and error appended to `log`, and wait for its end.

    The command leads a process group of its own. When this process is interrupted, told to end, or the deadline passes,
    the whole group is told to end and, after `GRACE_SECONDS`, killed. A kill of this process that cannot be caught
    leaves the group running.

    Raises:
        HostError: `child_not_started` (Refused); `child_too_slow` (Failed) after the deadline, the group has ended.
    """
    started = time.monotonic()
    with _ending_signals():
        child = _started(command, directory, environment, log)
        try:
            status = child.wait(timeout=deadline_seconds)
        except subprocess.TimeoutExpired:
            raise HostError(
                f"`{' '.join(command)}` had not ended after {deadline_seconds:.0f} s and was ended",
                code="child_too_slow",
                fix="run it by hand to see where it waits, or give it longer with --deadline",
                outcome=Outcome.FAILED,
            ) from None
        finally:
            _end_group(child)
    return Logged(status=status, seconds=time.monotonic() - started)


def _started(
    command: Sequence[str], directory: Path, environment: Mapping[str, str], log: IO[bytes]
) -> "subprocess.Popen[bytes]":
    try:
        return subprocess.Popen(  # noqa: S603  the command is that of a recorded run; nothing passes through a shell
            list(command),
            cwd=directory,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            process_group=0,
        )
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise HostError(
            f"cannot start {command[0]} in {directory}: {why}",
            code="child_not_started",
            fix="check that the program and the folder are still there",
        ) from None


def _end_group(child: "subprocess.Popen[bytes]") -> None:
    """End what is left of the group: everything when its leader still runs, what it left behind when it has ended."""
    until = time.monotonic() + GRACE_SECONDS
    _send(child.pid, signal.SIGTERM)
    while _lives(child) and time.monotonic() < until:
        time.sleep(POLL_SECONDS)
    _send(child.pid, signal.SIGKILL)
    child.wait()


def _lives(child: "subprocess.Popen[bytes]") -> bool:
    child.poll()
    try:
        os.killpg(child.pid, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _send(group: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):  # all of it has ended
        os.killpg(group, number)


@contextmanager
def _ending_signals() -> Generator[None]:
    """Let a signal that would end this process at once pass through as an exception, so that the group is ended."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set handlers
        return
    before = {number: signal.signal(number, _end) for number in ENDING if signal.getsignal(number) is signal.SIG_DFL}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)
