"""What makes collectives what they are, spelled alike on both sides: streams, names, compared fields (CP-1)."""

from collections.abc import Hashable
from typing import NamedTuple

from paritrace.compare.distributed import Distributed
from paritrace.compare.settings import Settings
from paritrace.evidence.calls import Call, Phase

BUCKET = "bucket "
"""Starts the label of a collective that is known by the parameters whose gradients it holds."""


class CollectiveFacts(NamedTuple):
    """The fields of a collective that are compared with those of its counterpart; ranks are global."""

    group: str
    ranks: tuple[int, ...]
    operation: str
    reduce: str
    root: int
    peer: int
    asynchronous: bool
    parameters: tuple[str, ...]  # in the order in which they lie in the bucket; empty: not known
    ordinal: int  # evidence only: a collective more or less before it shifts it

    @property
    def route(self) -> Hashable:
        """What is done with the tensors, whatever they hold."""
        return (self.ranks, self.operation, self.reduce, self.root, self.peer)

    @property
    def label(self) -> str:
        """The name under which a bucket finds its counterpart, whatever its order; "" of anything else."""
        return BUCKET + ", ".join(sorted(self.parameters)) if self.parameters else ""

    def channel(self, rank: int) -> Hashable:
        """The stream of its own that it belongs to: a group, or two neighbours in it by their distance."""
        if self.peer < 0 or self.peer not in self.ranks or rank not in self.ranks:
            return ("group", self.group, self.peer)
        return ("group", self.group, (self.ranks.index(self.peer) - self.ranks.index(rank)) % len(self.ranks), "peer")


def collective_facts(distributed: Distributed, call: Call, *, settings: Settings) -> CollectiveFacts | None:
    """The facts of a call that is a collective, None of any other."""
    collective = distributed.collectives.get(call.id)
    if collective is None:
        return None
    group = distributed.groups[collective.group]
    return CollectiveFacts(
        group.key,
        group.ranks,
        collective.operation,
        collective.reduce,
        collective.root,
        collective.peer,
        collective.asynchronous,
        tuple(settings.spelled(name) for name in collective.parameters),
        collective.ordinal,
    )


def stream_of(facts: CollectiveFacts | None, *, rank: int, moment: tuple[int, int, str], thread: str) -> Hashable:
    """The stream of a call: of its thread, or of its group if it is a collective; optimizers step over all batches."""
    step, microbatch, phase = moment
    microbatch = -1 if phase == Phase.OPTIMIZER.value else microbatch
    if facts is None:
        return (step, microbatch, phase, thread)
    return (step, microbatch, phase, facts.channel(rank))


def wider_stream(moment: tuple[int, int, str]) -> Hashable:
    """The streams in which a collective's counterpart may stand: those of every group at the same moment."""
    step, microbatch, phase = moment
    return (step, -1 if phase == Phase.OPTIMIZER.value else microbatch, phase)
