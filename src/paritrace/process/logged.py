"""Runs one command to its end with a deadline, its output in a file, and ends all that it started when it has to."""

import signal
import subprocess
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import IO

from msgspec import Struct

from paritrace.errors import HostError, Outcome
from paritrace.process.ending import end_tree
from paritrace.process.guarding import guarded
from paritrace.process.orphans import adopting

ENDING = (signal.SIGTERM, signal.SIGHUP)


class Logged(Struct, frozen=True):
    """A command that has ended. `status` is negative when a signal ended it."""

    status: int
    seconds: float


def _nothing() -> None:
    """Nobody waits for the end."""


def run_logged(
    command: Sequence[str],
    *,
    directory: Path,
    environment: Mapping[str, str],
    log: IO[bytes],
    deadline_seconds: float,
    ended: Callable[[], None] = _nothing,
) -> Logged:
    """Run `command` in `directory`, standard output and error appended to `log`, and wait for its end.

    The command leads a process group of its own. When this process is interrupted, told to end, or the deadline passes,
    the group and all that it started are told to end and, after `ending.GRACE_SECONDS`, killed. A guard does the same
    when this process is killed, which it cannot see coming. What left its parents, as daemons do, is adopted by this
    process and ended with the rest; the guard cannot find it.

    `ended` is called when the command has ended by itself, before what it left behind is ended.

    Raises:
        HostError: `child_not_started` (Refused); `child_too_slow` (Failed) after the deadline, the group has ended.
    """
    started = time.monotonic()
    with ending_signals(), guarded() as guard, adopting() as end_orphans:
        child = _started(command, directory, environment, log)
        try:
            guard(child.pid)
            status = child.wait(timeout=deadline_seconds)
            ended()
        except subprocess.TimeoutExpired:
            raise HostError(
                f"`{' '.join(command)}` had not ended after {deadline_seconds:.0f} s and was ended",
                code="child_too_slow",
                fix="run it by hand to see where it waits, or give it longer with --deadline",
                outcome=Outcome.FAILED,
            ) from None
        finally:
            end_tree(child.pid)
            child.wait()
            end_orphans()
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


@contextmanager
def ending_signals() -> Generator[None]:
    """Let a signal that would end this process at once pass through as an exception: what it started is ended."""
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
