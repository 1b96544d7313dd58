"""The invariants between ranks by name, and what is said of them where one rank is there alone (CP-25, CP-9)."""

from collections.abc import Iterator, Sequence

from paritrace.compare.checks_across import Presence
from paritrace.compare.checks_result import Evidence, Invariant, Outcome
from paritrace.compare.checks_telling import ranks_told

ONE_RANK = "one rank: there is no other to compare with"

# CP-25's invariants between ranks; each is named, so that nobody takes their absence for agreement.
BETWEEN_RANKS = {
    "replicas.parameters": "parameters are equal on all replicas",
    "replicas.optimizer_state": "optimizer state is equal on all replicas",
    "replicas.gradients": "gradients of replicas are equal once reduced",
    "replicas.buffers": "buffers are equal on all replicas",
    "replicas.declared": "parameters on several ranks are known for what they are",
    "replicas.rng": "generators agree and differ as the mesh asks",
    "batches.across_ranks": "batches differ between data-parallel ranks",
    "collectives.match": "members of a group make the same collectives",
    "collectives.completed": "each collective was seen to complete",
    "collectives.results": "a collective gives all members the same result",
}


def alone_invariants(presence: Presence, /) -> Iterator[Invariant]:
    """Yields every invariant across ranks of a run of which one rank is there, or none."""
    for identity, words in BETWEEN_RANKS.items():
        status = Outcome.NOT_APPLICABLE if presence.num_expected <= 1 else Outcome.NOT_CHECKABLE
        yield Invariant(identity, status, -1, -1, words, Evidence(reason=_why_alone(presence)))


def compared_told(presence: Presence, ranks: Sequence[int], /) -> str:
    """Returns which ranks were compared, of how many, and which are missing."""
    missing = f"; {ranks_told(presence.missing)} missing" if presence.missing else ""
    restart = f" of restart {presence.incarnation}" if presence.incarnation else ""
    return f"{ranks_told(ranks)} of {presence.num_expected:,}{restart} compared{missing}"


def _why_alone(presence: Presence) -> str:
    if presence.num_expected <= 1:
        return ONE_RANK
    return f"{ranks_told(presence.ranks)} of {presence.num_expected:,} is there; {ranks_told(presence.missing)} missing"
