"""Discrete choices that differ, as of routing or top-k: sizes behind one are no round-off (CP-7, A-10): pure."""

from typing import NamedTuple

from paritrace.compare.describe import slot_differences
from paritrace.compare.ranks import RankComparison
from paritrace.compare.translate import Side
from paritrace.evidence.calls import Phase, Slot

INTEGERS = ("int", "uint")
FLOATS = ("float", "bfloat")


class Choice(NamedTuple):
    """A paired call that turned numbers into other integers, by the baseline's index."""

    call: int
    step: int
    left: int


def first_choice(of: RankComparison) -> Choice | None:
    """The first call inside a model's forward pass that reads numbers and gives other integers; None without any.

    Outside of a model, as where a script counts right answers, a choice leads to nothing that is judged.
    """
    side = of.sides.baseline
    found = [i for i, verdict in of.verdicts.verdicts.items() if verdict.outputs and _chooses(side, i, verdict.outputs)]
    i = min(found, key=lambda i: side.calls[i].left, default=None)
    return None if i is None else Choice(i, side.context_of(i)[0], side.calls[i].left)


def _chooses(side: Side, i: int, outputs: tuple[int, ...]) -> bool:
    call = side.calls[i]
    inside = call.parent >= 0 and side.context_of(i)[2] == Phase.FORWARD
    reads = any(_is(side, slot, FLOATS) for slot in call.inputs)
    return inside and reads and any(_is(side, call.outputs[place], INTEGERS) for place in outputs)


def _is(side: Side, slot: Slot, kinds: tuple[str, ...]) -> bool:
    return side.recorded.kinds[slot.kind].dtype.startswith(kinds)


def told_choice(of: RankComparison, choice: Choice) -> str:
    """How many of the sampled elements differ, and how close the chosen values are, as far as they were sampled."""
    side = of.sides.baseline
    outputs = {
        place: found
        for direction, place, found in slot_differences(of, choice.call, directions="o")
        if direction == "o"
    }
    choices = [found for place, found in outputs.items() if _is(side, side.calls[choice.call].outputs[place], INTEGERS)]
    counted = next(
        (found.note for found in choices if found.num_samples_differing is not None), "how many is not known"
    )
    margins = [found.max_ulp for found in outputs.values() if found.max_ulp is not None]
    margin = f"; the values beside them differ by at most {max(margins):,} ULP" if margins else ""
    return f"{counted}{margin}"
