"""What the parts of wholes that disagree show: which agree, which are alike; a rank only where evidence says so."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from paritrace.evidence.boxes import Box, Tiling, tiling
from paritrace.evidence.folds import fold_elements

MAX_FACTS = 8
UNTOLD = "; sums do not show which shard differs"


class Held(NamedTuple):
    """A piece of a whole: where it lies, the ranks that hold it, its `elements-u64`; None where it has no one value."""

    box: Box | None
    ranks: tuple[int, ...]
    value: int | None
    unlike: bool = False  # the ranks that hold it do not agree


def facts_of(ours: Sequence[Held], theirs: Sequence[Held]) -> tuple[str, ...]:
    """Facts for a person; they attribute nothing that the parts do not show."""
    found: list[str] = []
    for side, held in (("baseline", ours), ("candidate", theirs)):
        found += _unlike(side, held)
        found += _alike(side, held)
    found += _part_by_part(ours, theirs)
    return tuple(found[:MAX_FACTS])


def _unlike(side: str, held: Sequence[Held]) -> Iterator[str]:
    for piece in held:
        if piece.unlike:
            yield f"{side}: {ranks_in_words(piece.ranks)} should hold the same part and do not"


def _alike(side: str, held: Sequence[Held]) -> Iterator[str]:
    """Parts of one shape and value at different places: what loading one shard twice leaves."""
    by_value: dict[tuple[object, int], list[Held]] = {}
    for piece in held:
        if piece.value is not None and piece.box is not None and piece.box.num_elements:
            by_value.setdefault((piece.box.shape, piece.value), []).append(piece)
    for pieces in by_value.values():
        if len(pieces) > 1:
            ranks = tuple(rank for piece in pieces for rank in piece.ranks)
            yield f"{side}: the shards on {ranks_in_words(ranks)} are equal (as when one is loaded twice)"


def _part_by_part(ours: Sequence[Held], theirs: Sequence[Held]) -> Iterator[str]:
    """Where parts of one side make up a part of the other, each such part is compared on its own."""
    if len(ours) < 2 and len(theirs) < 2:
        return
    mirrored = len(theirs) > len(ours)
    small, large = (theirs, ours) if mirrored else (ours, theirs)
    compared = [(piece, inside) for piece in large if (inside := _inside(piece, small))]
    if len(compared) < 2:  # the whole against its parts: that is what did not agree
        if len(small) > 1 and len(large) == 1:
            yield f"the sum of all {len(small)} shards is not the whole{UNTOLD}"
        return
    for piece, inside in compared:
        if fold_elements([part.value for part in inside]) != piece.value:
            fine, coarse = ranks_in_words([rank for part in inside for rank in part.ranks]), ranks_in_words(piece.ranks)
            candidate, baseline = (fine, coarse) if mirrored else (coarse, fine)
            yield f"the candidate's part on {candidate} differs from the baseline's on {baseline}"


def _inside(piece: Held, small: Sequence[Held]) -> list[Held]:
    """The parts that make up exactly this one; none where they do not."""
    if piece.box is None or piece.value is None:
        return []
    low, size = piece.box.offset, piece.box.shape
    found: list[Held] = []
    moved: list[Box] = []
    for part in small:
        if part.box is None or len(part.box.offset) != len(low):
            return []
        offset = tuple(at - start for at, start in zip(part.box.offset, low, strict=True))
        box = Box(offset, part.box.shape)
        if tiling(size, (box,)) is not Tiling.OUTSIDE and box.num_elements:
            found.append(part)
            moved.append(box)
    complete = bool(found) and tiling(size, tuple(moved)) is Tiling.EXACT
    return found if complete and all(part.value is not None for part in found) else []


def ranks_in_words(ranks: Sequence[int]) -> str:
    """Returns `rank 1`, `ranks 0 and 1`, `ranks 0, 1 and 2`."""
    numbers = [str(rank) for rank in sorted(set(ranks))]
    if len(numbers) == 1:
        return f"rank {numbers[0]}"
    return f"ranks {', '.join(numbers[:-1])} and {numbers[-1]}"
