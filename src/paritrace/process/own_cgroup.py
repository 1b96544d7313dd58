"""A cgroup for one invocation, where we may make one: then its exclusivity is verified, not promised (RS-7)."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

from paritrace.clock import SYSTEM, Clock
from paritrace.evidence.gaps import Gap, ResourceGap
from paritrace.evidence.ids import checked_id
from paritrace.process.cgroup_evidence import CgroupScope, CgroupVersion
from paritrace.process.cgroups import MEMBERS
from paritrace.process.memory_limits import LIMIT

REMOVE_SECONDS = 2.0
"""A killed process stays a member until the kernel has taken it down, which takes longer the more memory it held."""
_POLL_SECONDS = 0.01
_SELF = b"0"  # what the kernel takes for whoever writes


class OwnCgroup:
    """A memory cgroup that we made; close it by `remove`."""

    def __init__(self, scope: CgroupScope, *, clock: Clock = SYSTEM) -> None:
        self.scope = scope
        self._clock = clock
        self._members = Path(scope.directory, MEMBERS).open("r+b", buffering=0)  # noqa: SIM115  until `remove`

    def join(self) -> None:
        """Move the calling process into it: for `preexec_fn`, one write to an open descriptor and nothing else.

        Raises:
            OSError: the kernel refused.
        """
        self._members.write(_SELF)

    def limit_memory(self, limit_bytes: int) -> None:
        """Set its memory limit, which the kernel enforces; on request only (RS-8).

        Raises:
            OSError: the kernel refused.
        """
        Path(self.scope.directory, LIMIT[self.scope.version]).write_text(str(limit_bytes), encoding="ascii")

    def remove(self, *, within_seconds: float = REMOVE_SECONDS) -> Gap[ResourceGap] | None:
        """Remove it; STILL_POPULATED when descendants of the invocation outlive it, which are left alone."""
        self._members.close()
        until = self._clock.monotonic_ns() + int(within_seconds * 1e9)
        while True:
            try:
                os.rmdir(self.scope.directory)
            except FileNotFoundError:
                return None
            except OSError as error:
                if self._clock.monotonic_ns() >= until:
                    return Gap(ResourceGap.STILL_POPULATED, f"{self.scope.path}: {error.strerror}")
                self._clock.sleep(_POLL_SECONDS)
            else:
                return None


def make_cgroup(of: CgroupScope, *, name: str, clock: Clock = SYSTEM) -> OwnCgroup | Gap[ResourceGap]:
    """Make a cgroup below `of`, or beside it where version 2 allows none below; NOT_DELEGATED where we may not.

    Version 2 hands a controller on only to cgroups below one without members of its own, the root aside.

    Raises:
        RequestError: Refused, code `bad_id`: the name.
    """
    name = checked_id(name, what="the name of a cgroup")
    why = f"{of.path} hands the memory controller on to none below or beside it"
    for path, directory in _parents(of):
        try:
            os.mkdir(directory / name)
        except OSError as error:
            why = f"below {path}: {error.strerror}"
            continue
        made = _made(of, path=str(path / name), directory=directory / name, clock=clock)
        if isinstance(made, OwnCgroup):
            return made
        why = f"below {path}: {made}"
    return Gap(ResourceGap.NOT_DELEGATED, why)


def _parents(of: CgroupScope) -> Iterator[tuple[PurePosixPath, Path]]:
    """Where a cgroup could be made, by path and directory, that processes of `of` may be moved into."""
    path, directory = PurePosixPath(of.path), Path(of.directory)
    places = [(path, directory)]
    if of.version is CgroupVersion.V2 and directory != Path(of.top):
        places.append((path.parent, directory.parent))
    return (place for place in places if of.version is CgroupVersion.V1 or _hands_on_memory(place[1]))


def _hands_on_memory(directory: Path) -> bool:
    try:
        return "memory" in (directory / "cgroup.subtree_control").read_text(encoding="ascii").split() and os.access(
            directory / MEMBERS, os.W_OK
        )
    except OSError:
        return False


def _made(of: CgroupScope, *, path: str, directory: Path, clock: Clock) -> OwnCgroup | str:
    """The cgroup that has just been made; what cannot be used is removed again."""
    try:
        status = os.stat(directory)
        scope = CgroupScope(
            version=of.version,
            path=path,
            directory=str(directory),
            top=of.top,
            device=status.st_dev,
            inode=status.st_ino,
        )
        return OwnCgroup(scope, clock=clock)
    except OSError as error:
        with suppress(OSError):
            os.rmdir(directory)
        return str(error.strerror)
