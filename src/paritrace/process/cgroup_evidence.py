"""What cgroups show, as records: whose counter it is, how many kills it counted, which limit binds (RS-7)."""

from enum import StrEnum
from typing import Literal

from msgspec import Struct

from paritrace.evidence.gaps import Gap, ResourceGap


class CgroupVersion(StrEnum):
    V1 = "cgroup v1"
    V2 = "cgroup v2"


class CgroupScope(Struct, frozen=True, forbid_unknown_fields=True):
    """One memory cgroup: by path for people, by device and inode for comparing (a path can be made anew).

    `path`: as /proc/PID/cgroup gives it. `directory`: where it lies in the file system of this mount namespace. `top`:
    the directory of the outermost cgroup that is visible.
    """

    version: CgroupVersion
    path: str
    directory: str
    top: str
    device: int
    inode: int


class OomCount(Struct, frozen=True, forbid_unknown_fields=True):
    """The kills of the kernel's out-of-memory killer that one cgroup had counted at one moment.

    `source`: the file, `memory.events` (version 2) or `memory.oom_control` (version 1). `oom_kill`: kills of members,
    in version 2 also of members of every cgroup below; `oom_kill_local`: of direct members alone. `oom_group_kill`:
    kills of whole cgroups. `oom`: how often the limit of *this* cgroup, or of one below it, ran out; the kill that
    follows is counted where the victim was (E-02). `systemd_oomd_kills`: processes that systemd-oomd says it killed
    here, which the kernel counts nowhere. A gap where it is not kept. `read_monotonic_ns`: a moment before the read.
    """

    scope: CgroupScope
    source: str
    oom_kill: int
    oom_kill_local: int | Gap[ResourceGap]
    oom_group_kill: int | Gap[ResourceGap]
    oom: int | Gap[ResourceGap]
    systemd_oomd_kills: int | Gap[ResourceGap]
    read_monotonic_ns: int


class MemoryLimit(Struct, frozen=True, forbid_unknown_fields=True):
    """The tightest memory limit among a cgroup and its *visible* ancestors; there may be a tighter one above (E-06).

    `limit_bytes`: `unlimited` means unlimited at the visible levels. `set_by`: the path of the cgroup that sets it, a
    gap where none does. `levels`: how many cgroups were looked at.
    """

    scope: CgroupScope
    limit_bytes: int | Literal["unlimited"] | Gap[ResourceGap]
    set_by: str | Gap[ResourceGap]
    levels: int


class Exclusivity(StrEnum):
    """Whether nothing else ran in a cgroup during an invocation (RS-7, RR-10). Only the first two cause anything."""

    VERIFIED = "verified"  # the cgroup was made for this invocation, and no stranger was seen in it
    DECLARED = "declared"  # the user says so, and no look at the members contradicts it
    UNKNOWN = "unknown"
    CONTRADICTED = "contradicted"  # declared or made by us, and a stranger was seen in it
