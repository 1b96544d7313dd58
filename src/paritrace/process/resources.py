"""What a process tree used, as records: snapshots, differences, and the errors for want of one (RS-1, RS-2)."""

from msgspec import Struct

from paritrace.errors import HostError
from paritrace.evidence.gaps import Gap, ResourceGap
from paritrace.evidence.ids import ProcessIdentity

SCOPE = "the host and its descendants"
"""What a snapshot speaks of, printed with it (RS-8). It observes and never limits."""

MEMORY_LABEL = "sum of resident memory (shared pages are counted once per process)"


class ObservedHost(Struct, frozen=True, forbid_unknown_fields=True):
    """The process at the root of a tree. `subject`: the runtime or run that it serves.

    `started_at`: RFC 3339. `identity.start_ticks` is in the unit of the process table that gave it: clock ticks after
    boot on Linux, microseconds of the wall clock on macOS.
    """

    subject: str
    identity: ProcessIdentity
    started_at: str


class ResourceSnapshot(Struct, frozen=True, forbid_unknown_fields=True):
    """What a process tree holds and has used at one moment: `SCOPE`.

    `resident_memory_bytes`: see MEMORY_LABEL. `pss_bytes`: shared pages divided among their users; a gap unless every
    process of the tree shows it. `process_count`: live, the host included, zombies not. `cpu_time_seconds`: user and
    system since the host's start, of the tree and of what its members have waited for; it falls when a descendant
    leaves the tree.

    Not collected unless asked for (RS-6): `subreaper`: whether the host, or somebody for it, was made to take in
    orphans, which leave the tree otherwise. `reparented`: pids of those taken in, as far as that is proven: they are
    children of who did it for the host; or of the host, but in a session that is neither the host's nor their own, or
    seen below another parent by an earlier snapshot. `other_session`: pids of descendants that left the host's session.
    """

    subject: str
    host: ProcessIdentity
    started_at: str
    observed_at: str
    resident_memory_bytes: int | Gap[ResourceGap]
    pss_bytes: int | Gap[ResourceGap]
    process_count: int | Gap[ResourceGap]
    cpu_time_seconds: float | Gap[ResourceGap]
    subreaper: bool | Gap[ResourceGap] = Gap(ResourceGap.NOT_COLLECTED)
    reparented: tuple[int, ...] | Gap[ResourceGap] = Gap(ResourceGap.NOT_COLLECTED)
    other_session: tuple[int, ...] | Gap[ResourceGap] = Gap(ResourceGap.NOT_COLLECTED)


class ResourceObservationUnavailable(HostError):  # noqa: N818  the name is the specification's
    """No snapshot could be read now (Refused); `gap` is what a record holds in its place."""

    def __init__(self, gap: Gap[ResourceGap]) -> None:
        super().__init__(
            f"the process tree could not be read: {gap.detail or gap.gap.value.replace('_', ' ')}",
            code="resource_observation_unavailable",
            fix="try again; a process of another user is readable by that user or root only",
        )
        self.gap = gap

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.gap,))


class ResourceObservationUnsupported(HostError):  # noqa: N818  the name is the specification's
    """There is never a snapshot on this platform or of this kind of adapter (Refused); `gap` as above."""

    def __init__(self, gap: Gap[ResourceGap]) -> None:
        super().__init__(
            f"process trees are not observed: {gap.detail or gap.gap.value.replace('_', ' ')}",
            code="resource_observation_unsupported",
            fix="run on Linux or macOS, with an adapter that is a process or Python",
        )
        self.gap = gap

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.gap,))


def cpu_seconds_between(before: ResourceSnapshot, after: ResourceSnapshot) -> float | Gap[ResourceGap]:
    """CPU seconds of the tree between two snapshots of one host; a gap for two hosts, or when the sum fell (RS-8)."""
    if before.host != after.host:
        return Gap(ResourceGap.HOST_DIFFERS)
    if isinstance(before.cpu_time_seconds, Gap):
        return before.cpu_time_seconds
    if isinstance(after.cpu_time_seconds, Gap):
        return after.cpu_time_seconds
    if isinstance(before.host.start_ticks, Gap) or isinstance(before.host.boot_id, Gap):
        return Gap(ResourceGap.IDENTITY_UNKNOWN)
    used = after.cpu_time_seconds - before.cpu_time_seconds
    return used if used >= 0 else Gap(ResourceGap.FELL, "a descendant left the tree")
