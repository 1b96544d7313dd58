"""Who a process is, and whether it still lives: host, boot, pid namespace, pid and start ticks from /proc (EV-3)."""

import os
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from paritrace.evidence.gaps import Gap, RunGap
from paritrace.evidence.ids import ProcessIdentity
from paritrace.process.stat import Stat, parse_stat

PROC = Path("/proc")


class Life(StrEnum):
    ALIVE = "alive"
    GONE = "gone"  # proven: same host, boot and pid namespace, and no such process any more
    NOT_CHECKABLE = "not_checkable_here"


class Liveness(Struct, frozen=True):
    life: Life
    why: str


def identity_of(pid: int, *, proc: Path = PROC) -> ProcessIdentity:
    """Return the identity of a process of this host; what /proc does not show is a gap."""
    return ProcessIdentity(
        host=os.uname().nodename,
        boot_id=boot_id(proc=proc),
        pid_namespace=_pid_namespace(proc),
        pid=pid,
        start_ticks=_start_ticks(pid, proc),
    )


def own_identity(*, proc: Path = PROC) -> ProcessIdentity:
    """Return the identity of this process."""
    return identity_of(os.getpid(), proc=proc)


def liveness(of: ProcessIdentity, *, proc: Path = PROC) -> Liveness:
    """Say whether a recorded process lives; GONE only when that is proven on this host and boot (EV-11, EV-17)."""
    here = identity_of(of.pid, proc=proc)
    unlike = _why_not_checkable(of, here)
    if unlike:
        return Liveness(Life.NOT_CHECKABLE, unlike)
    if not (proc / str(of.pid)).exists():
        return Liveness(Life.GONE, f"process {of.pid} of {of.host} has ended")
    if isinstance(of.start_ticks, Gap) or isinstance(here.start_ticks, Gap):
        return Liveness(Life.NOT_CHECKABLE, f"process {of.pid} shows no start time")
    if of.start_ticks != here.start_ticks:
        return Liveness(Life.GONE, f"process {of.pid} of {of.host} has ended; its number belongs to another one now")
    stat = _stat(of.pid, proc)
    if stat is not None and stat.has_ended:
        return Liveness(Life.GONE, f"process {of.pid} of {of.host} has ended; nobody has taken its exit status yet")
    return Liveness(Life.ALIVE, f"process {of.pid} of {of.host} is alive")


def has_ended(of: ProcessIdentity, *, proc: Path = PROC) -> bool:
    """Whether a recorded process is proven to have ended; it may wait for somebody to take its exit status."""
    return liveness(of, proc=proc).life is Life.GONE


def _why_not_checkable(of: ProcessIdentity, here: ProcessIdentity) -> str:
    if of.host != here.host:
        return f"its process runs on host {of.host}, this is {here.host}"
    if isinstance(of.boot_id, Gap) or isinstance(here.boot_id, Gap):
        return f"host {of.host} shows no boot id"
    if of.boot_id != here.boot_id:
        return f"host {of.host} has booted since, or another host has its name"
    if isinstance(of.pid_namespace, Gap) or of.pid_namespace != here.pid_namespace:
        return f"its process numbers are those of another container of host {of.host}"
    return ""


def boot_id(*, proc: Path = PROC) -> str | Gap[RunGap]:
    """The id that the kernel drew at this boot; a gap where /proc does not show it."""
    try:
        text = (proc / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        text = ""
    return text or Gap(RunGap.NO_BOOT_ID)


def _pid_namespace(proc: Path) -> str | Gap[RunGap]:
    try:
        return os.readlink(proc / "self/ns/pid")
    except OSError:
        return Gap(RunGap.NO_PID_NAMESPACE)


def _start_ticks(pid: int, proc: Path) -> int | Gap[RunGap]:
    stat = _stat(pid, proc)
    return Gap(RunGap.NO_START_TICKS) if stat is None else stat.start_ticks


def _stat(pid: int, proc: Path) -> Stat | None:
    """What /proc shows of a process; None where it shows nothing that can be read."""
    try:
        return parse_stat((proc / str(pid) / "stat").read_bytes())
    except (OSError, ValueError):
        return None
