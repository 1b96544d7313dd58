"""Comparing the fields of two paired collectives: group, reduction, root, peer, what a bucket holds (CP-7)."""

from collections.abc import Sequence
from typing import NamedTuple

from paritrace.compare.collective_facts import CollectiveFacts

Both = tuple[CollectiveFacts | None, CollectiveFacts | None]


class FieldDifference(NamedTuple):
    """One field of a pair of collectives in the words of each side."""

    name: str
    baseline: str
    candidate: str


def unlike(both: Both) -> bool:
    """Whether the fields say that the two compute something else."""
    ours, theirs = both
    if ours is None or theirs is None:
        return False
    return ours.route != theirs.route or _held_otherwise(ours, theirs)


def _held_otherwise(ours: CollectiveFacts, theirs: CollectiveFacts) -> bool:
    """Whether both say what they hold, and not the same: to name no parameters is not to hold none."""
    return bool(ours.parameters and theirs.parameters) and set(ours.parameters) != set(theirs.parameters)


def waits_otherwise(both: Both) -> bool:
    """Whether one side alone waits for the result at once: that changes no value."""
    ours, theirs = both
    return ours is not None and theirs is not None and ours.asynchronous != theirs.asynchronous


def packed_otherwise(both: Both) -> bool:
    """Whether both hold the same gradients in another order: their bits say nothing of each other then."""
    ours, theirs = both
    if ours is None or theirs is None or ours.parameters == theirs.parameters:
        return False
    return sorted(ours.parameters) == sorted(theirs.parameters)


def plainly_alike(both: Both) -> bool:
    """Whether every compared field agrees."""
    return not (unlike(both) or waits_otherwise(both) or packed_otherwise(both))


def field_differences(both: Both) -> list[FieldDifference]:
    """The fields that differ, those that explain the most first; empty of calls that are no collectives."""
    ours, theirs = both
    if ours is None or theirs is None:
        return []
    held = _alone(ours.parameters, theirs.parameters) if _held_otherwise(ours, theirs) else ("", "")
    found = [
        FieldDifference("ranks", told_ranks(ours.ranks), told_ranks(theirs.ranks)),
        FieldDifference("reduce", ours.reduce or "none", theirs.reduce or "none"),
        FieldDifference("root", _rank(ours.root), _rank(theirs.root)),
        FieldDifference("peer", _rank(ours.peer), _rank(theirs.peer)),
        FieldDifference("parameters", *held),
        FieldDifference("asynchronous", str(ours.asynchronous), str(theirs.asynchronous)),
    ]
    return [field for field in found if field.baseline != field.candidate]


def told_fields(fields: Sequence[FieldDifference]) -> str:
    """What differs, in the order of `field_differences`: `reduce: avg instead of sum`."""
    return "; ".join(_told(field) for field in fields)


def _told(field: FieldDifference) -> str:
    match field.name:
        case "ranks":
            return f"over ranks {field.candidate} instead of {field.baseline}"
        case "parameters":
            sides = ((field.baseline, "baseline"), (field.candidate, "candidate"))
            return ", ".join(f"{text} in the {side} only" for text, side in sides if text)
        case _:
            return f"{field.name}: {field.candidate} instead of {field.baseline}"


def told_ranks(ranks: tuple[int, ...]) -> str:
    """Ranks as a person lists them: `0,1`; long runs of them by their ends."""
    if len(ranks) > MANY_RANKS and list(ranks) == list(range(ranks[0], ranks[-1] + 1)):
        return f"{ranks[0]}-{ranks[-1]}"
    return ",".join(str(rank) for rank in ranks)


MANY_RANKS = 4


def _rank(rank: int) -> str:
    return "none" if rank < 0 else str(rank)


def _alone(ours: tuple[str, ...], theirs: tuple[str, ...]) -> tuple[str, str]:
    """What each bucket holds and the other does not."""
    left, right = sorted(set(ours) - set(theirs)), sorted(set(theirs) - set(ours))
    return (f"with {', '.join(left)}" if left else "", f"with {', '.join(right)}" if right else "")
