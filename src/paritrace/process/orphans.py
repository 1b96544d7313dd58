"""Adopts the orphans of what we start, where that was asked for, and takes their wait statuses (RS-6)."""

import os
import signal
from collections.abc import Collection

from msgspec import Struct

from paritrace.clock import SYSTEM, Clock
from paritrace.process.kernel_calls import become_subreaper
from paritrace.process.stop_facts import Victim, VictimSource

MOST_REAPED = 100_000  # more processes than a machine has


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


def killed_by_others(reaped: Collection[Reaped], *, we_killed: bool) -> tuple[Victim, ...]:
    """Return those that SIGKILL ended, unless we sent one ourselves: then whose it was is not known."""
    if we_killed:
        return ()
    return tuple(
        Victim(pid=one.pid, source=VictimSource.REAPED, detail="wait status SIGKILL", seen_ns=one.seen_ns)
        for one in reaped
        if one.status == -signal.SIGKILL
    )
