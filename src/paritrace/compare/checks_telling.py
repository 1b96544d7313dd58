"""Spells ranks and sides of a disagreement, alike in every invariant across ranks."""

from collections.abc import Iterable, Sequence

SIDES_TOLD = 4  # of a disagreement with more sides, the rest are counted


def ranks_told(ranks: Iterable[int], /) -> str:
    """Returns `rank 2`, `ranks 0,1` or `ranks 0-3,7`; nothing at all is `no rank`."""
    found = sorted(set(ranks))
    if not found:
        return "no rank"
    return f"{'rank' if len(found) == 1 else 'ranks'} {spans(found)}"


def spans(ranks: Sequence[int], /) -> str:
    """Returns rising numbers with runs of three or more as `first-last`."""
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs)


def sides_told(sides: Sequence[Sequence[int]], /) -> str:
    """Returns `ranks 0,1 agree; rank 2 differs`; without any agreement `ranks 0-2 all differ`."""
    together = [side for side in sides if len(side) > 1]
    alone = sorted(rank for side in sides if len(side) == 1 for rank in side)
    if not together:
        return f"{ranks_told(alone)} {'all differ' if len(alone) > 2 else 'differ'}"
    told = [f"{ranks_told(side)} agree" for side in together[:SIDES_TOLD]]
    if len(together) > SIDES_TOLD:
        told.append(f"{len(together) - SIDES_TOLD:,} more groups agree among themselves")
    if alone:
        told.append(f"{ranks_told(alone)} {'differs' if len(alone) == 1 else 'differ'}")
    return "; ".join(told)
