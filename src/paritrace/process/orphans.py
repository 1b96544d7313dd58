"""Adopts the orphans of what we start, and takes their wait statuses or ends them (RS-6, P5)."""

import os
import signal
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager, suppress

from msgspec import Struct

from paritrace.clock import SYSTEM, Clock
from paritrace.process.ending import children_of, end_tree
from paritrace.process.kernel_calls import become_subreaper, end_subreaper, is_subreaper
from paritrace.process.stop_facts import Victim, VictimSource

MOST_REAPED = 100_000  # more processes than a machine has
MOST_ROUNDS = 100  # of ending orphans: each round ends all there are, and one that keeps forking is given up


class Reaped(Struct, frozen=True):
    """An adopted process that has ended. `status` is negative where a signal ended it."""

    pid: int
    status: int
    seen_ns: int


def adopt_orphans() -> str:
    """Become a child subreaper; returns why not, "" where it worked."""
    try:
        become_subreaper()
    except OSError as error:
        return f"orphans are not adopted: {error.strerror}"
    return ""


def reap_adopted(*, clock: Clock = SYSTEM) -> tuple[Reaped, ...]:
    """Take the statuses of all children that have ended by now; the host was waited for before."""
    found: list[Reaped] = []
    while len(found) < MOST_REAPED:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            break
        if pid == 0:
            break
        found.append(Reaped(pid, os.waitstatus_to_exitcode(status), clock.monotonic_ns()))
    return tuple(found)


@contextmanager
def adopting() -> Generator[Callable[[], None]]:
    """Adopt the orphans of what is started in the block; yields what ends them, daemons in sessions of their own too.

    The children that this process has by then are left alone; others are not to be started in the block by other
    threads. Without the kernel's help (not Linux) nothing is adopted, and nothing ended.
    """
    try:
        before = is_subreaper()
        become_subreaper()
    except OSError:
        yield _nothing
        return
    ours = children_of(os.getpid())
    try:
        yield lambda: _end_orphans(ours)
    finally:
        if not before:
            end_subreaper()


def _nothing() -> None:
    """Nothing was adopted."""


def _end_orphans(ours: dict[int, str]) -> None:
    for _ in range(MOST_ROUNDS):
        adopted = {pid for pid, start in children_of(os.getpid()).items() if ours.get(pid) != start}
        if not adopted:
            return
        for pid in adopted:
            end_tree(pid)
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def killed_by_others(reaped: Collection[Reaped], *, we_killed: bool) -> tuple[Victim, ...]:
    """Return those that SIGKILL ended, unless we sent one ourselves: then whose it was is not known."""
    if we_killed:
        return ()
    return tuple(
        Victim(pid=one.pid, source=VictimSource.REAPED, detail="wait status SIGKILL", seen_ns=one.seen_ns)
        for one in reaped
        if one.status == -signal.SIGKILL
    )
