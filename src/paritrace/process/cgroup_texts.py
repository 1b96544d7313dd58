"""Parses what cgroup files say: memberships, counters, limits; pure (RS-7)."""

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Literal

from msgspec import Struct

from paritrace.process.cgroup_evidence import CgroupVersion
from paritrace.process.mounts import Mount

_MEMORY = "memory"
_V1_UNLIMITED = 2**63 - 2**16  # version 1 shows no limit as the largest multiple of the page size below 2**63


class Place(Struct, frozen=True):
    """The memory cgroup of a process: its path in the hierarchy, the directory of it and of the hierarchy's top."""

    version: CgroupVersion
    path: str
    directory: str
    top: str


def memory_place(memberships: str, mounts: Iterable[Mount]) -> Place | str:
    """Where the memory cgroup of a process lies, or why it cannot be seen.

    `memberships`: the text of /proc/PID/cgroup. A kernel has its memory controller in one hierarchy only: where
    version 1 names it, version 2 has none, mounted or not (E-05).
    """
    paths = dict(_paths(memberships))
    version = CgroupVersion.V1 if CgroupVersion.V1 in paths else CgroupVersion.V2
    path = paths.get(version)
    if path is None:
        return "the process is in no hierarchy that could have a memory controller"
    if "/.." in path:
        return f"the cgroup {path} lies outside our cgroup namespace"
    for mount in mounts:
        if _serves_memory(mount, version) and PurePosixPath(path).is_relative_to(mount.root):
            below = PurePosixPath(path).relative_to(mount.root)
            return Place(version=version, path=path, directory=str(PurePosixPath(mount.point) / below), top=mount.point)
    return f"no {version} hierarchy with {path} is mounted here"


def _paths(memberships: str) -> Iterator[tuple[CgroupVersion, str]]:
    for line in memberships.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            yield CgroupVersion.V2, path
        elif _MEMORY in controllers.split(","):
            yield CgroupVersion.V1, path


def _serves_memory(mount: Mount, version: CgroupVersion) -> bool:
    if version is CgroupVersion.V2:
        return mount.kind == "cgroup2"
    return mount.kind == "cgroup" and _MEMORY in mount.options


def parse_counters(text: str) -> dict[str, int]:
    """The lines `name number` of a file; others are left out."""
    pairs = (line.split() for line in text.splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def parse_limit(text: str) -> int | Literal["unlimited"]:
    """A limit in bytes; `max`, and what version 1 writes for none, is `unlimited`.

    Raises:
        ValueError: neither `max` nor a number.
    """
    if text.strip() == "max":
        return "unlimited"
    limit = int(text)
    return "unlimited" if limit >= _V1_UNLIMITED else limit
