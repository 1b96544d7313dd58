"""Reads cgroups of this machine: the scope of a process, its kill counts and its members (RS-7, RR-10, E-02, E-05)."""

import os
from pathlib import Path

from paritrace.clock import SYSTEM, Clock
from paritrace.evidence.gaps import Gap, ResourceGap
from paritrace.process.cgroup_evidence import CgroupScope, CgroupVersion, OomCount
from paritrace.process.cgroup_texts import memory_place, parse_counters
from paritrace.process.mounts import parse_mounts

EVENTS, EVENTS_LOCAL, OOM_CONTROL = "memory.events", "memory.events.local", "memory.oom_control"
MEMBERS = "cgroup.procs"
_SHOWS_ROOT = {CgroupVersion.V1: ("release_agent", True), CgroupVersion.V2: ("cgroup.type", False)}
"""A file that the root has alone, or lacks alone; a container's own top has the path `/` too and is no root."""
_OOMD_KILLS = ("user.oomd_kill", "trusted.oomd_kill")
_NO_COUNTER = Gap(ResourceGap.NO_COUNTER)


class Cgroups:
    """The memory cgroups that this mount namespace shows, of version 2 or 1, whichever has the memory controller.

    `proc`: where /proc is, for tests. Nothing is read before a method is called.
    """

    def __init__(self, *, proc: str = "/proc", clock: Clock = SYSTEM) -> None:
        self._proc = Path(proc)
        self._clock = clock

    def scope_of(self, pid: int) -> CgroupScope | Gap[ResourceGap]:
        """The memory cgroup that `pid` is a direct member of; a gap for the root cgroup, which counts everybody's."""
        try:
            memberships = (self._proc / str(pid) / "cgroup").read_text(encoding="utf-8", errors="surrogateescape")
            mounts = (self._proc / "self" / "mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
            place = memory_place(memberships, parse_mounts(mounts))
        except (OSError, ValueError) as error:
            return Gap(ResourceGap.UNREADABLE, f"the cgroup of process {pid}: {error}")
        if isinstance(place, str):
            return Gap(ResourceGap.NO_CONTROLLER, place)
        return _scope(place.version, place.path, place.directory, place.top)

    def oom_count(self, scope: CgroupScope) -> OomCount | Gap[ResourceGap]:
        """The kills counted in a scope by now; a gap when it is gone, or another one has its place (device, inode)."""
        read_at = self._clock.monotonic_ns()
        replaced = why_replaced(scope)
        if replaced:
            return replaced
        source = EVENTS if scope.version is CgroupVersion.V2 else OOM_CONTROL
        counters = _counters(scope, source)
        if isinstance(counters, Gap):
            return counters
        if "oom_kill" not in counters:
            return Gap(ResourceGap.NO_COUNTER, f"{source} of {scope.path} has no oom_kill")
        local = counters if scope.version is CgroupVersion.V1 else _counters(scope, EVENTS_LOCAL)
        return OomCount(
            scope=scope,
            source=source,
            oom_kill=counters["oom_kill"],
            oom_kill_local=local if isinstance(local, Gap) else local.get("oom_kill", _NO_COUNTER),
            oom_group_kill=counters.get("oom_group_kill", _NO_COUNTER),
            oom=counters.get("oom", _NO_COUNTER),
            systemd_oomd_kills=_oomd_kills(scope),
            read_monotonic_ns=read_at,
        )

    def members(self, scope: CgroupScope) -> frozenset[int] | Gap[ResourceGap]:
        """The pids in a scope and in every cgroup below it; 0 stands for one of another pid namespace."""
        replaced = why_replaced(scope)
        if replaced:
            return replaced
        found: set[int] = set()
        try:
            for directory, _, _ in os.walk(scope.directory, onerror=_raise):
                found.update(map(int, Path(directory, MEMBERS).read_text(encoding="ascii").split()))
        except (OSError, ValueError) as error:
            return Gap(ResourceGap.UNREADABLE, f"the members of {scope.path}: {error}")
        return frozenset(found)


def _scope(version: CgroupVersion, path: str, directory: str, top: str) -> CgroupScope | Gap[ResourceGap]:
    name, root_has_it = _SHOWS_ROOT[version]
    try:
        status = os.stat(directory)
        names = os.listdir(directory)
    except OSError as error:
        return Gap(ResourceGap.UNREADABLE, f"{version} {path}: {error.strerror}")
    if (name in names) is root_has_it:
        return Gap(ResourceGap.ROOT_CGROUP, f"{version} {path} is the root")
    if EVENTS not in names and OOM_CONTROL not in names:
        return Gap(ResourceGap.NO_CONTROLLER, f"the memory controller is not enabled for {version} {path}")
    return CgroupScope(
        version=version, path=path, directory=directory, top=top, device=status.st_dev, inode=status.st_ino
    )


def why_replaced(scope: CgroupScope) -> Gap[ResourceGap] | None:
    """A gap when the directory of a scope is gone or is another cgroup by now; None while it is the same one."""
    try:
        status = os.stat(scope.directory)
    except OSError as error:
        return Gap(ResourceGap.SCOPE_CHANGED, f"{scope.path}: {error.strerror}")
    if (status.st_dev, status.st_ino) != (scope.device, scope.inode):
        return Gap(ResourceGap.SCOPE_CHANGED, f"{scope.path} is another cgroup now")
    return None


def _counters(scope: CgroupScope, name: str) -> dict[str, int] | Gap[ResourceGap]:
    try:
        return parse_counters(Path(scope.directory, name).read_text(encoding="ascii"))
    except FileNotFoundError:
        return Gap(ResourceGap.NO_COUNTER, f"{scope.path} has no {name}")
    except (OSError, ValueError) as error:
        return Gap(ResourceGap.UNREADABLE, f"{name} of {scope.path}: {error}")


def _oomd_kills(scope: CgroupScope) -> int | Gap[ResourceGap]:
    for name in _OOMD_KILLS:
        try:
            return int(os.getxattr(scope.directory, name))
        except (OSError, ValueError):
            continue
    return Gap(ResourceGap.NO_COUNTER, "systemd-oomd left no mark")


def _raise(error: OSError) -> None:
    raise error
