"""Asks paritrace one thing: a request in a file, a document on standard output, and a lock that tells of its life."""

import fcntl
import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from paritrace_harness.journal import ExperimentError

GRACE_SECONDS = 60.0  # beyond what the request allows: the tool ends its workload and reports
LOOK_SECONDS = 0.1
END_SECONDS = 30.0  # what was told to end gets to end what it started


def ask(tools: Sequence[str], action: str, request: Path | None, *, lock: Path, seconds: float) -> bytes:
    """Run the tool to its end; returns what it printed. The lock is held for as long as the tool lives."""
    words = [*tools, action] + ([] if request is None else ["--request", str(request)])
    descriptor = _locked(lock, seconds=0.0)
    try:
        tool = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, pass_fds=(descriptor,))
    finally:
        os.close(descriptor)
    with tool:
        try:
            return tool.communicate(timeout=seconds)[0]
        except subprocess.TimeoutExpired:
            tool.terminate()  # it ends its workload, and says so in its document
            try:
                return tool.communicate(timeout=END_SECONDS)[0]
            except subprocess.TimeoutExpired:
                tool.kill()
                raise ExperimentError(f"`{' '.join(words)}` did not end") from None


def wait_for_end(lock: Path, *, seconds: float) -> None:
    """Wait until a tool that an earlier process of ours started, and left behind when it was killed, has ended."""
    os.close(_locked(lock, seconds=seconds))


def _locked(path: Path, *, seconds: float) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    until = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                os.close(descriptor)
                raise ExperimentError(f"an operation runs still: {path} is held by it") from None
            time.sleep(LOOK_SECONDS)
        else:
            return descriptor
