"""Locks among the processes of one node: kernel locks on its own disk, never by time stamps (ST-7, ST-8a, EV-11)."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from paritrace.clock import SYSTEM, Clock
from paritrace.errors import HostError
from paritrace.evidence.gaps import Gap
from paritrace.evidence.ids import ProcessIdentity
from paritrace.files import LOCAL, Files

RANK_LOCK_SECONDS = 60.0  # a sync of the same rank holds it for one bundle: 256 MiB at 32 MiB/s take 8 s
NODE_LOCK_SECONDS = 600.0  # uploads of a node's ranks wait for each other: 8 s each, and eight and more ranks


@contextmanager
def rank_lock(
    folder: Path,
    rank: int,
    /,
    *,
    owner: ProcessIdentity,
    files: Files = LOCAL,
    clock: Clock = SYSTEM,
    wait_seconds: float = RANK_LOCK_SECONDS,
) -> Generator[None, None, None]:
    """One sync of a rank at a time.

    Raises:
        HostError: Refused: `lock_timeout` after `wait_seconds`, `no_locks`, `lock_of_another_host`.
    """
    with _owned(folder / f"rank-{rank}.lock", owner, files=files, clock=clock, wait_seconds=wait_seconds):
        yield


@contextmanager
def node_lock(
    folder: Path,
    /,
    *,
    owner: ProcessIdentity,
    files: Files = LOCAL,
    clock: Clock = SYSTEM,
    wait_seconds: float = NODE_LOCK_SECONDS,
) -> Generator[None, None, None]:
    """One upload of a node at a time; raises as `rank_lock` does."""
    with _owned(folder / "node.lock", owner, files=files, clock=clock, wait_seconds=wait_seconds):
        yield


@contextmanager
def _owned(
    path: Path, owner: ProcessIdentity, *, files: Files, clock: Clock, wait_seconds: float
) -> Generator[None, None, None]:
    files.mkdir(path.parent)

    def admits(mark: bytes) -> None:
        require_own_machine(mark, owner, path=path)

    mark = msgspec.json.encode(owner)
    with files.locked_by(path, mark, admits=admits, told=holder_in_words, clock=clock, wait_seconds=wait_seconds):
        yield


def require_own_machine(mark: bytes, owner: ProcessIdentity, *, path: Path) -> None:
    """Refuse a lock that a process of another machine did not let go: whether it lives cannot be seen from here.

    A mark of this host or of this boot is that of a process whose end the kernel has seen, since it gave us the lock;
    one that cannot be read was cut off by a kill.
    """
    holder = _holder(mark)
    if holder is None:
        return
    same_boot = not isinstance(owner.boot_id, Gap) and holder.boot_id == owner.boot_id
    if holder.host == owner.host or same_boot:
        return
    raise HostError(
        f"{path} was locked by process {holder.pid} of host {holder.host}, which cannot be seen from {owner.host}",
        code="lock_of_another_host",
        fix=f"staging must be on a disk of this machine; if that process has ended, remove {path}",
    )


def holder_in_words(mark: bytes) -> str:
    """Return who a mark says holds the lock; empty where it cannot be read."""
    holder = _holder(mark)
    if holder is None:
        return ""
    boot = "" if isinstance(holder.boot_id, Gap) else f" (boot {holder.boot_id})"
    return f"process {holder.pid} of {holder.host}{boot}"


def _holder(mark: bytes) -> ProcessIdentity | None:
    try:
        return msgspec.json.decode(mark, type=ProcessIdentity)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
