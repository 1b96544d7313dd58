"""Summaries of module-level tensors folded to their whole: moments, counts, samples (CA-5, CA-28)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple

from paritrace.compare.folds_layout import Layout, Part, Piece
from paritrace.compare.samples import values_of
from paritrace.evidence.boxes import in_whole, owned, whole
from paritrace.evidence.calls import Counts, Detail, Moments
from paritrace.evidence.fingerprints import sample_indices
from paritrace.evidence.folds import fold_counts, fold_moments
from paritrace.evidence.gaps import Gap

Samples = Mapping[int, float]
"""Logical index in the whole -> value."""


class SlotPart(NamedTuple):
    """One rank's part of a module-level tensor with its summary."""

    part: Part
    detail: Detail


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeTensor:
    """What is known of a whole; `bits` only where one rank held all of it in logical order."""

    ranks: tuple[int, ...]
    shape: tuple[int, ...]
    moments: Moments | None
    counts: Counts | None
    samples: Samples = field(default_factory=dict[int, float])
    bits: str = ""
    facts: tuple[str, ...] = ()


def alone(found: SlotPart) -> WholeTensor:
    """A tensor that one rank holds all of."""
    kind, detail = found.part.kind, found.detail
    shape = () if kind is None else kind.shape
    return WholeTensor(
        ranks=(found.part.rank,),
        shape=shape,
        moments=detail.moments,
        counts=detail.counts,
        samples=_samples_at(sample_indices(prod(shape)), found),
        bits=detail.bits,
    )


def folded(layout: Layout, parts: Sequence[SlotPart]) -> WholeTensor:
    """The whole of a partition; of a pending sum only what adds up: the sum and the samples."""
    held = [parts[piece.members[0]] for piece in layout.pieces]
    shape = layout.shape or ()
    ranks = tuple(sorted(parts[place].part.rank for piece in layout.pieces for place in piece.members))
    facts = tuple(fact for piece in layout.pieces if (fact := _unlike(piece, parts)))
    samples = [_samples_of(piece, parts, shape) for piece in layout.pieces]
    if layout.pending:
        moments, summed = _summed(held, samples)
        return WholeTensor(ranks=ranks, shape=shape, moments=moments, counts=None, samples=summed, facts=facts)
    moments_or_gap = fold_moments([part.detail.moments for part in held])
    counts_or_gap = fold_counts([part.detail.counts for part in held])
    return WholeTensor(
        ranks=ranks,
        shape=shape,
        moments=None if isinstance(moments_or_gap, Gap) else moments_or_gap,
        counts=None if isinstance(counts_or_gap, Gap) else counts_or_gap,
        samples={index: value for part in samples for index, value in part.items()},
        bits=held[0].detail.bits if len(held) == 1 and layout.pieces[0].box == whole(shape) else "",
        facts=facts,
    )


def _unlike(piece: Piece, parts: Sequence[SlotPart]) -> str:
    """Replicas must agree; their bits say whether they do."""
    if len({parts[place].detail.bits for place in piece.members}) < 2:
        return ""
    return f"ranks {', '.join(str(parts[place].part.rank) for place in piece.members)} should hold the same part"


def _samples_of(piece: Piece, parts: Sequence[SlotPart], shape: tuple[int, ...]) -> Samples:
    """The samples of a piece. A placed part was sampled where the whole is, a declared one where itself is."""
    found = parts[piece.members[0]]
    if piece.box is None or found.part.kind is None:
        return {}
    if found.part.placement is not None:
        return _samples_at(owned(sample_indices(prod(shape)), box=piece.box, shape=shape), found)
    places = sample_indices(found.part.kind.num_elements)
    return _samples_at(in_whole(places, box=piece.box, shape=shape), found)


def _samples_at(places: Sequence[int], found: SlotPart) -> Samples:
    kind = found.part.kind
    values = None if kind is None else values_of(found.detail.samples, kind.dtype)
    if values is None or values.size != len(places):  # complex numbers, or sampled elsewhere
        return {}
    return dict(zip(places, values.tolist(), strict=True))


def _summed(held: Sequence[SlotPart], samples: Sequence[Samples]) -> tuple[Moments | None, Samples]:
    """`P(sum)` adds and `P(avg)` is the mean of its terms; no other pending operation is linear."""
    operations = {
        how for part in held if part.part.placement for how in part.part.placement.placements if how[0] == "P"
    }
    if not operations <= {"P(sum)", "P(avg)"} or len(operations) > 1 or not samples:
        return None, {}
    share = 1.0 / len(held) if operations == {"P(avg)"} else 1.0
    common = set(samples[0]).intersection(*samples[1:])
    sums = [None if part.detail.moments is None else part.detail.moments.sum for part in held]
    known = [value for value in sums if value is not None]
    total = sum(known) * share if len(known) == len(sums) else None
    summed = {index: sum(part[index] for part in samples) * share for index in sorted(common)}
    return Moments(None, None, total, None, None), summed
