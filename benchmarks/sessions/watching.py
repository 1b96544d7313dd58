"""When something was known and when the last process was gone, seen from outside, every two milliseconds."""

import os
import time
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

EVERY_SECONDS = 0.002
START_SECONDS = 180  # interpreters that import torch, on a loaded machine


class Death(Struct, frozen=True):
    """Seconds from the blow: until whoever drives the ranks says so, until no rank is left; None: not in the time."""

    known: float | None
    gone: float | None


def pids_in(folder: Path, world_size: int) -> list[int]:
    """The process numbers of all ranks, once every one of them steps. Raises TimeoutError."""
    paths = [folder / f"{rank}.pid" for rank in range(world_size)]
    if seconds_until(lambda: all(path.exists() for path in paths), most=START_SECONDS) is None:
        raise TimeoutError(f"no rank steps after {START_SECONDS} s: {folder}")
    return [int(path.read_text(encoding="ascii")) for path in paths]


def is_gone(pid: int) -> bool:
    """Whether no process of this number runs; one that only waits to be reaped has gone."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return True
    return state in "ZX"


def seconds_until(condition: Callable[[], bool], *, most: float) -> float | None:
    """Seconds until it holds, None where it does not within `most`."""
    start = time.monotonic()
    while True:
        if condition():
            return time.monotonic() - start
        if time.monotonic() - start > most:
            return None
        time.sleep(EVERY_SECONDS)


def watched(blow: Callable[[], None], known: Callable[[], bool], pids: list[int], *, most: float) -> Death:
    """Deal the blow and watch until it is known and all of `pids` are gone."""
    start = time.monotonic()
    blow()
    found: dict[str, float] = {}
    while len(found) < 2 and time.monotonic() - start < most:
        if "known" not in found and known():
            found["known"] = time.monotonic() - start
        if "gone" not in found and all(is_gone(pid) for pid in pids):
            found["gone"] = time.monotonic() - start
        time.sleep(EVERY_SECONDS)
    return Death(found.get("known"), found.get("gone"))


def ended(pid: int) -> None:
    """Kill what may be left."""
    import contextlib
    import signal

    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
