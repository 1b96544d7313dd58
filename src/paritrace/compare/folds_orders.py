"""The order of a parameter's elements between unlike layouts: what the module level saw when it was read (CA-7, CA-28).

`elements-u64` does not see order. A parameter that is whole where a module reads it (FSDP2 gathers it) has an
order-sensitive fingerprint there; a placed one has samples at logical indices.
"""

from collections.abc import Mapping
from math import isnan
from typing import NamedTuple

from paritrace.compare.folds_facts import Held, ranks_in_words
from paritrace.compare.folds_layout import locate
from paritrace.compare.folds_sides import FoldSide
from paritrace.compare.folds_tensors import SlotPart, WholeTensor, alone, folded
from paritrace.evidence.boxes import owned
from paritrace.evidence.calls import Level, OriginKind, Phase
from paritrace.evidence.gaps import Gap

Read = dict[tuple[int, str], WholeTensor]
"""Step and name -> the parameter as modules read it first in that step."""


class Order(NamedTuple):
    """What both sides' order says: `other` if it is not the same, with facts; nothing where it was not seen."""

    other: bool
    facts: tuple[str, ...]


UNSEEN = Order(False, ())


def parameters_read(side: FoldSide) -> Read:
    """Every parameter that a module call of a forward read, folded over the ranks that read it."""
    found: dict[tuple[int, str], dict[int, SlotPart]] = {}
    for recorded in side.ranks:
        for call in recorded.calls:
            context = recorded.contexts[call.context]
            if recorded.functions[call.function].level is not Level.MODULE or context.phase is not Phase.FORWARD:
                continue
            for place, slot in enumerate(call.inputs):
                origin = recorded.origins.get(slot.source) if isinstance(slot.source, int) else None
                detail = recorded.details.get((call.id, "i", place))
                if origin is None or detail is None or origin.kind is not OriginKind.PARAMETER:
                    continue
                key = (context.step, side.spelled(origin.name, recorded))
                part = SlotPart(side.part(recorded, slot.kind), detail)
                found.setdefault(key, {}).setdefault(recorded.session.rank, part)
    return {key: whole for key, parts in found.items() if (whole := _whole(list(parts.values()), key[1], side))}


def _whole(parts: list[SlotPart], name: str, side: FoldSide) -> WholeTensor | None:
    layout = locate(
        [part.part for part in parts], dims=side.dims_of(name), num_absent=max(0, side.world_size - len(parts))
    )
    if isinstance(layout, Gap) or not layout.pieces:
        return None
    if layout.assumed:
        return alone(parts[0]) if len({part.detail.bits for part in parts}) == 1 else None
    return folded(layout, parts)


def order_of(ours: WholeTensor | None, theirs: WholeTensor | None, *, held: Mapping[str, tuple[Held, ...]]) -> Order:
    """Compare a parameter as both sides read it; `held`: its pieces at the begin of the step, by side."""
    if ours is None or theirs is None or ours.shape != theirs.shape:
        return UNSEEN
    common = sorted(ours.samples.keys() & theirs.samples.keys())
    differing = {index for index in common if not _same(ours.samples[index], theirs.samples[index])}
    other = bool(differing) or bool(ours.bits and theirs.bits and ours.bits != theirs.bits)
    if not other:
        return UNSEEN
    facts = [f"{len(differing)} of {len(common)} samples at logical indices differ"] if common else []
    for side, pieces in held.items():
        facts += _by_rank(side, pieces, tuple(common), differing, shape=ours.shape)
    return Order(True, tuple(facts))


def _same(value: float, other: float) -> bool:
    return value == other or (isnan(value) and isnan(other))


def _by_rank(
    side: str, pieces: tuple[Held, ...], common: tuple[int, ...], differing: set[int], *, shape: tuple[int, ...]
) -> list[str]:
    """How many of the differing samples lie in the part of each rank; the rank is named only by that."""
    if len(pieces) < 2 or any(piece.box is None for piece in pieces):
        return []
    told: dict[str, tuple[int, int]] = {}
    for piece in pieces:
        if piece.box is not None:
            mine = owned(common, box=piece.box, shape=shape)
            told[ranks_in_words(piece.ranks)] = (sum(index in differing for index in mine), len(mine))
    apart = {ranks: numbers for ranks, numbers in told.items() if numbers[0]}
    if len(apart) == 1:
        ((ranks, numbers),) = apart.items()
        return [f"{side}: all of them on {ranks} ({numbers[0]} of its {numbers[1]})"]
    return (
        [f"{side}: {', '.join(f'{n} of {m} on {ranks}' for ranks, (n, m) in list(told.items())[:4])}"] if apart else []
    )
