"""A guard that ends what this process started when this process is killed, which it cannot see coming (P5)."""

import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import partial

from paritrace.errors import HostError
from paritrace.process import ending

GUARD_SECONDS = 10.0  # the guard has nothing left to do; only a machine that stands still takes as long


@contextmanager
def guarded() -> Generator[Callable[[int], None]]:
    """A guard that ends the process that it is told of, and all below it, when this process is killed.

    It ends with the block, and does nothing to what it was told of then.

    Raises:
        HostError: Refused, code `child_not_started`.
    """
    guard = _guard()
    try:
        yield partial(_tell, guard)
    finally:
        _dismiss(guard)


def _guard() -> "subprocess.Popen[bytes]":
    try:
        return subprocess.Popen(  # noqa: S603  our own interpreter and file
            (sys.executable, "-I", "-S", ending.__file__),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        raise HostError(
            f"cannot start {sys.executable}: {error.strerror}",
            code="child_not_started",
            fix="check that another process can be started here",
        ) from None


def _dismiss(guard: "subprocess.Popen[bytes]") -> None:
    try:
        guard.communicate(ending.DONE, timeout=GUARD_SECONDS)
    except subprocess.TimeoutExpired:
        guard.kill()
        guard.wait()


def _tell(guard: "subprocess.Popen[bytes]", pid: int) -> None:
    if guard.stdin is not None:
        with suppress(BrokenPipeError):  # somebody killed the guard: what it would guard runs all the same
            guard.stdin.write(f"{pid}\n".encode())
            guard.stdin.flush()
