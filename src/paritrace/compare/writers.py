"""Unpaired calls that may have written a state between two looks at it: such a state is not outside (CP-8)."""

from collections.abc import Iterator, Sequence

import numpy as np

from paritrace.compare.agreement import Sides
from paritrace.compare.digests import Digests
from paritrace.compare.figure_rows import DigestDifference
from paritrace.compare.flows import FromOrigin, source_of
from paritrace.compare.sites import place_of
from paritrace.compare.state_groups import TENSORS
from paritrace.compare.translate import Side
from paritrace.evidence.calls import Flag, OriginKind, Phase

RNG = "rng"
BATCH = "batch"  # made by any call before the model is
MAX_SITES = 3
Writers = tuple[list[int], list[int]]


def unpaired_writers(sides: Sides, digests: Digests, found: DigestDifference) -> Writers:
    """The calls of either side without a partner that may have written what differs since it was last seen."""
    return (
        list(_writers(sides.baseline, sides.pairing.partner_a, found, _window(digests, found, 0))),
        list(_writers(sides.candidate, sides.pairing.partner_b, found, _window(digests, found, 1))),
    )


def in_the_optimizer(sides: Sides, writers: Writers) -> bool:
    """Whether all of them are steps of an optimizer, whose one purpose is to write parameters and its own state."""
    places = [(side, i) for side, items in zip((sides.baseline, sides.candidate), writers, strict=True) for i in items]
    return all(side.context_of(i)[2] == Phase.OPTIMIZER for side, i in places)


def told_writers(sides: Sides, found: DigestDifference, writers: Writers) -> str:
    """What differs, and the lines that may have written it: each side's last ones."""
    places = {
        place_of(side.recorded.sites[side.calls[i].site]): None
        for side, items in zip((sides.baseline, sides.candidate), writers, strict=True)
        for i in items[-MAX_SITES:]
    }
    state = f"{found.group.replace('_', ' ')} {found.name}"
    return f"{state} may have been written at {', '.join(list(places)[-MAX_SITES:])}"


def _window(digests: Digests, found: DigestDifference, side: int) -> tuple[int, int]:
    """From when the state was seen last to when it differs, in this side's sequence numbers."""
    figures = digests.sides[side]
    if found.moment == "begin":
        earlier = figures.place((found.step - 1, 0, "begin", found.group), found.name)
        return earlier, (found.at, found.other_at)[side]
    now = (found.at, found.other_at)[side]
    losses = figures.places(step=found.step, moment="loss")
    return max((at for at in losses if at < now), default=-1), now


def _writers(side: Side, partners: Sequence[int], found: DigestDifference, window: tuple[int, int]) -> Iterator[int]:
    left = side.calls.column("left")
    free = (np.asarray(partners) < 0) & (window[0] < left) & (left <= window[1])
    places: list[int] = np.flatnonzero(free).tolist()
    for i in places:
        if _may_write(side, i, found) and (found.moment == "begin" or side.context_of(i)[0] == found.step):
            yield i


def _may_write(side: Side, i: int, found: DigestDifference) -> bool:
    call = side.calls[i]
    if found.group == RNG:
        return FromOrigin(OriginKind.RNG, found.name) in [source_of(side, slot) for slot in call.inputs]
    inside = side.context_of(i)[2] != Phase.OPTIMIZER and side.module_of(i) != ""
    if found.group == BATCH:
        return not inside and side.context_of(i)[2] == Phase.FORWARD and bool(call.outputs)
    return found.group in TENSORS and bool(call.flags & Flag.INPLACE) and not inside
