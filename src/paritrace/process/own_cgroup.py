"""A cgroup for one invocation, where we may make one: then its exclusivity is verified, not promised (RS-7)."""

from paritrace.evidence.gaps import Gap, ResourceGap
from paritrace.process.cgroup_evidence import CgroupScope


class OwnCgroup:
    """A memory cgroup that we made. Pass `join` to the child between fork and exec, so that nothing escapes it."""

    def __init__(self, scope: CgroupScope) -> None:
        self.scope = scope

    def join(self) -> None:
        """Move the calling process into it: for `preexec_fn`, one write to an open descriptor and nothing else."""
        raise NotImplementedError

    def limit_memory(self, limit_bytes: int) -> None:
        """Set its memory limit. The kernel enforces it; we set it on request only (RS-8)."""
        raise NotImplementedError

    def remove(self) -> Gap[ResourceGap] | None:
        """Remove it; STILL_POPULATED when descendants of the invocation outlive it."""
        raise NotImplementedError


def make_cgroup(of: CgroupScope, *, name: str) -> OwnCgroup | Gap[ResourceGap]:
    """Make a cgroup below `of`, or beside it; NOT_DELEGATED where this is not ours to do."""
    raise NotImplementedError
