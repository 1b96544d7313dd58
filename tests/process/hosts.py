"""Real processes for tests of process trees: small programs that say when they are ready, and are killed at the end."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

WAIT_SECONDS = 60.0
POLL_SECONDS = 0.01


@contextmanager
def host(program: str, *, adopt: Callable[[], None] | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """A Python program in a process group of its own, once it has printed a line."""
    process = subprocess.Popen(
        [sys.executable, "-S", "-E", "-c", program],
        stdout=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=adopt,  # noqa: PLW1509  one system call
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline(), "the program ended before it was ready"
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.wait(WAIT_SECONDS)
        process.stdout.close()


def until(condition: Callable[[], bool]) -> None:
    """Wait until it holds; fails after a generous while."""
    end = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < end, "it never came to hold"
        time.sleep(POLL_SECONDS)
