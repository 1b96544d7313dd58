"""The barrier that each rank validates by itself, without a collective, before it takes part (SE-5, SE-29)."""

from msgspec import Struct

from paritrace.session.commands import Kind


class Barrier(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What must hold on a rank. `config_revision` None is unasserted, `pending` None is any."""

    epoch: int  # the one this command brings: the rank's own plus one
    kind: Kind
    config_revision: int | None = None
    pending: int | None = None


class Standing(Struct, frozen=True):
    """What a rank holds against a barrier. `admits`: the kinds its state allows now."""

    epoch: int
    config_revision: int
    pending: int
    admits: frozenset[Kind]


class Violation(Struct, frozen=True, forbid_unknown_fields=True):
    """The first thing that does not hold on a rank."""

    rank: int
    field: str
    expected: str
    received: str


def violation_of(barrier: Barrier, standing: Standing, *, rank: int) -> Violation | None:
    """Return what is violated first, in the order epoch, kind, revision, pending; None where all holds."""
    if barrier.epoch != standing.epoch + 1:
        return Violation(rank, "command_epoch", str(standing.epoch + 1), str(barrier.epoch))
    if barrier.kind not in standing.admits:
        return Violation(rank, "kind", " or ".join(sorted(standing.admits)) or "none", barrier.kind.value)
    if barrier.config_revision not in (None, standing.config_revision):
        return Violation(rank, "config_revision", str(standing.config_revision), str(barrier.config_revision))
    if barrier.pending not in (None, standing.pending):
        return Violation(rank, "pending", str(standing.pending), str(barrier.pending))
    return None
