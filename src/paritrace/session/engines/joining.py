"""Whether a process that dials in belongs to this generation: the rule of joining (SE-16, F-18)."""

import hmac
from collections.abc import Collection

from paritrace.session.engines.seam import RankSpec
from paritrace.session.messages import Joined


def refusal_of(joined: Joined, spec: RankSpec, *, taken: Collection[int]) -> str | None:
    """Return why a process may not join, None where it may. `taken`: ranks that have joined already.

    Nothing is told of the session to one that has not its token.
    """
    if not hmac.compare_digest(joined.token.encode(), spec.token.encode()):
        return "the token is not that of this session"
    if joined.generation != spec.generation or joined.job_id != spec.job_id:
        return (
            f"stale participant rejected (generation {joined.generation} of job {joined.job_id!r}"
            f" in generation {spec.generation} of job {spec.job_id!r})"
        )
    if joined.world_size != spec.world_size:
        return f"it is one of {joined.world_size} ranks, this session has {spec.world_size}"
    if not 0 <= joined.rank < spec.world_size:
        return f"rank {joined.rank} is none of 0 to {spec.world_size - 1}"
    if joined.rank in taken:
        return f"rank {joined.rank} has joined already"
    return None
