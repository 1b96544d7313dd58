"""Tells failures of check that belong together as one: a gradient that parts, then its parameter, then its state."""

import sys
from collections.abc import Iterable, Sequence

from msgspec import Struct

from paritrace.compare.checks_result import Invariant, Outcome, Parting
from paritrace.compare.checks_telling import ranks_told, sides_told
from paritrace.reports.harmless import shorten
from paritrace.reports.wording import count

MOMENTS = {"begin": "before the step", "grads": "before the optimizer"}
ORDER = ("begin", "batch", "grads")  # of moments in a step
NAME_COLUMNS = 40
OF_A_STORY = frozenset({"replicas.gradients", "replicas.parameters", "replicas.optimizer_state"})

# What comes first of several failures: causes before what follows from them, and what is told of the run before what
# is told of its evidence. Everything that is not listed stands in the middle, in the order of the check.
FIRST = (
    "replicas.gradients",
    "replicas.parameters",
    "replicas.optimizer_state",
    "collectives.match",
    "batches.across_ranks",
    "replicas.rng",
    "collectives.results",
)
FINITE = ("values.finite", "loss.finite", "gradients.norm_finite")  # behind FIRST, of all three the earliest step first
LAST = ("evidence.ranks_present", "collectives.completed", "evidence.journal_whole", "evidence.steps_complete")


class Story(Struct, frozen=True):
    """What became of one parameter, earliest first; `others`: how many parameters part besides it."""

    owner: str
    partings: tuple[Parting, ...]
    others: int


def in_order(failed: Iterable[Invariant], /) -> list[Invariant]:
    """Returns failures, the most telling first; of one invariant on several ranks, the earliest step."""
    found = list(failed)
    nth = {one.id: place for place, one in reversed(list(enumerate(found)))}

    def key(one: Invariant) -> tuple[int, int, int]:
        step = one.step if one.step >= 0 else sys.maxsize
        return (_place(one.id), step, nth[one.id]) if one.id in FINITE else (_place(one.id), nth[one.id], step)

    return sorted(found, key=key)


def _place(identity: str) -> int:
    if identity in FIRST:
        return FIRST.index(identity) - len(FIRST) - 1
    if identity in FINITE:
        return -1
    return 1 + LAST.index(identity) if identity in LAST else 0


def story_of(failed: Iterable[Invariant], /) -> Story | None:
    """Returns the story of the parameter whose states part first; None when no replicas part."""
    related = [one for one in failed if one.id in OF_A_STORY and one.status is Outcome.FAIL and one.evidence.partings]
    partings = sorted((parting for one in related for parting in one.evidence.partings), key=_when)
    if not partings:
        return None
    owner = owner_of(partings[0])
    owners = {owner_of(parting) for parting in partings}
    most = max(len(owners), *(one.evidence.total for one in related if one.id != "replicas.optimizer_state"), 1)
    first_of_each: dict[str, Parting] = {}
    for parting in partings:
        if owner_of(parting) == owner:
            first_of_each.setdefault(parting.what, parting)
    return Story(owner, tuple(first_of_each.values()), most - 1)


def owner_of(parting: Parting, /) -> str:
    """Returns the parameter that a state belongs to."""
    return parting.name.rpartition(":")[0] if parting.what == "optimizer_state" else parting.name


def _when(parting: Parting) -> tuple[int, int]:
    return parting.step, ORDER.index(parting.moment) if parting.moment in ORDER else len(ORDER)


def sentence(story: Story, /) -> str:
    """Returns the story in a sentence."""
    first, *later = story.partings
    name = shorten(story.owner, width=NAME_COLUMNS)
    subject = {"gradient": "gradient of ", "optimizer_state": "optimizer state of "}.get(first.what, "") + name
    moment = MOMENTS.get(first.moment, first.moment)
    told = f"{subject} differs {_between(first.sides)} at step {first.step}, {moment}"
    if later:
        told += f"; {_later(later)}"
    return f"{told}; {count(story.others, 'more parameter')} likewise." if story.others else f"{told}."


def _between(sides: Sequence[Sequence[int]]) -> str:
    if len(sides) == 2 and all(len(side) == 1 for side in sides):
        return f"between ranks {sides[0][0]} and {sides[1][0]}"
    if len(sides) == 2:
        return f"between {ranks_told(sides[0])} and {ranks_told(sides[1])}"
    return f"between ranks ({sides_told(sides)})"


def _later(partings: Sequence[Parting]) -> str:
    words = {"parameter": "the parameter itself", "optimizer_state": "its optimizer state", "gradient": "its gradient"}
    by_step: dict[int, list[str]] = {}
    for parting in partings:
        by_step.setdefault(parting.step, []).append(words.get(parting.what, parting.what))
    return ", ".join(f"{' and '.join(whats)} from step {step} on" for step, whats in by_step.items())
