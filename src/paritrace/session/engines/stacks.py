"""Stacks of a rank, stuck in native code or not: faulthandler writes them at a signal, into a file (SE-12).

faulthandler writes from the signal's own handler, so that neither the GIL nor a C call that does not return keeps it.
The signal is a real-time one, which no launcher, scheduler or training script uses; its default ends a process, so it
is only sent to one that catches it and has its own file of stacks open, as /proc says: no other process has.
"""

import faulthandler
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from paritrace.clock import SYSTEM, Clock

STACKS_SIGNAL = signal.SIGRTMIN + 8
STACKS_SECONDS = 1.0  # a handler writes within milliseconds; only a stopped process does not
QUIET_SECONDS = 0.05  # nothing more came for so long: it is whole
POLL_SECONDS = 0.01
STACKS_BYTES = 256 * 1024  # of one rank: a hundred threads
_PROC = "/proc"


def dump_on_signal(path: Path) -> None:
    """Have this process append the stacks of all its threads to a file at every `STACKS_SIGNAL`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    faulthandler.register(STACKS_SIGNAL, file=file, all_threads=True)  # it keeps the descriptor for good


def catches(pid: int, number: int = STACKS_SIGNAL) -> bool:
    """Whether a process has a handler for a signal, as far as /proc tells."""
    with suppress(OSError, ValueError):
        for line in Path(_PROC, str(pid), "status").read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("SigCgt:"):
                return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


def is_asked_by(pid: int, path: Path) -> bool:
    """Whether a process would write its stacks into this file: it catches the signal, and has the file open."""
    if not catches(pid):
        return False
    with suppress(OSError):
        wanted = os.stat(path)
        for name in os.listdir(f"{_PROC}/{pid}/fd"):
            with suppress(OSError):  # closed meanwhile
                found = os.stat(f"{_PROC}/{pid}/fd/{name}")
                if (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino):
                    return True
    return False


def stacks_of(processes: Mapping[int, tuple[int, Path]], *, clock: Clock = SYSTEM) -> dict[int, str]:
    """Ask processes, each (pid, its file) by rank, for their stacks; return those that came within `STACKS_SECONDS`."""
    before = {rank: _size(path) for rank, (_, path) in processes.items()}
    asked = {rank for rank, (pid, path) in processes.items() if is_asked_by(pid, path) and _sent(pid)}
    sizes = _settled({rank: processes[rank][1] for rank in asked}, before, clock)
    return {rank: _read(processes[rank][1], before[rank]) for rank in sorted(asked) if sizes[rank] > before[rank]}


def _sent(pid: int) -> bool:
    try:
        os.kill(pid, STACKS_SIGNAL)
    except OSError:
        return False
    return True


def _settled(paths: Mapping[int, Path], before: Mapping[int, int], clock: Clock) -> dict[int, int]:
    """Wait until every file has grown and then stayed as it is for a while, or the time is over."""
    until = clock.monotonic_ns() + round(STACKS_SECONDS * 1e9)
    sizes, since = {rank: before[rank] for rank in paths}, clock.monotonic_ns()
    while (now := clock.monotonic_ns()) < until and not _is_whole(sizes, before, now - since):
        clock.sleep(POLL_SECONDS)
        fresh = {rank: _size(path) for rank, path in paths.items()}
        if fresh != sizes:
            sizes, since = fresh, clock.monotonic_ns()
    return sizes


def _is_whole(sizes: Mapping[int, int], before: Mapping[int, int], quiet_ns: int) -> bool:
    return quiet_ns >= QUIET_SECONDS * 1e9 and all(size > before[rank] for rank, size in sizes.items())


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _read(path: Path, start: int) -> str:
    with path.open("rb") as file:
        file.seek(start)
        return file.read(STACKS_BYTES).decode("utf-8", "replace")
