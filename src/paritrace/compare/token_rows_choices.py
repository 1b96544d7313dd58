"""Where the tokens of a sample part: a near tie that tipped over, and all that follows from it (A-10, CP-7): pure."""

from collections.abc import Iterator, Mapping

import numpy as np
import xxhash

from paritrace.compare.token_rows_align import POSITION_BITS, Aligned, Column, Flags, Samples, align
from paritrace.compare.token_rows_load import Cell, Whole
from paritrace.compare.token_rows_result import RowChoice
from paritrace.evidence.rows import TOKENS

Columns = Mapping[Cell, tuple[Column, Column]]
Parted = dict[tuple[int, int], int]
"""Step and sample -> the first position at which the token is another one."""


def parted(cells: Columns) -> Parted:
    """The first position of each sample at which the declared token ids differ."""
    found: Parted = {}
    for (step, output), (ours, theirs) in cells.items():
        if output != TOKENS:
            continue
        pairs = align(ours, theirs)
        differing = pairs.keys[ours.bits[pairs.ours] != theirs.bits[pairs.theirs]]
        for key in differing.tolist():  # rising: the first of a sample stands first
            found.setdefault((step, key >> POSITION_BITS), key & ((1 << POSITION_BITS) - 1))
    return found


def followers(step: int, pairs: Aligned, *, parted: Parted, output: str) -> Flags:
    """Rows of samples whose tokens have parted: from there on, of the tokens themselves after it."""
    samples, positions = pairs.keys >> POSITION_BITS, pairs.keys & ((1 << POSITION_BITS) - 1)
    found = np.zeros(pairs.keys.size, dtype=np.bool_)
    for (at, sample), position in parted.items():
        if at == step:
            found |= (samples == sample) & (positions > position if output == TOKENS else positions >= position)
    return found


def choices(
    cells: Columns, *, parted: Parted, samples: Samples, later: Mapping[tuple[int, int], int]
) -> Iterator[RowChoice]:
    """Each sample whose tokens part, with the margin of the choice where the rows show which output made it."""
    for (step, sample), position in sorted(parted.items()):
        ours, theirs = cells[step, TOKENS]
        pairs = align(ours, theirs)
        low, high = sample << POSITION_BITS, (sample << POSITION_BITS) + position
        before = (pairs.keys >= low) & (pairs.keys < high)
        prefix = int((before & (ours.bits[pairs.ours] == theirs.bits[pairs.theirs])).sum())
        output, margins = _margins(cells, step, high)
        yield RowChoice(
            step=step,
            sample=samples.names[sample],
            position=position,
            prefix=prefix,
            whole=prefix == position,
            output=output,
            margins=margins,
            later=later.get((step, sample), 0),
        )


def _margins(cells: Columns, step: int, key: int) -> tuple[str, tuple[float, float] | None]:
    """The output at the position before whose largest element is, on both sides, the token that came next."""
    chosen = [_at(one, key) for one in cells[step, TOKENS]]
    for (at, output), columns in cells.items():
        if at != step or output == TOKENS:
            continue
        rows = [_at(one, key - 1) for one in columns]
        if any(row < 0 or not one.has_tops(np.array([row])) for one, row in zip(columns, rows, strict=True)):
            continue
        tops = [one.top(row) for one, row in zip(columns, rows, strict=True)]
        tokens = [int(one.bits[row]) for one, row in zip(cells[step, TOKENS], chosen, strict=True)]
        if all(_token_bits(top) == token for (top, _), token in zip(tops, tokens, strict=True)):
            return output, (tops[0][1], tops[1][1])
    return "", None


def _at(column: Column, key: int) -> int:
    """The row of a token that is there once; -1 where it is not."""
    keys: Whole = column.keys
    row = int(np.searchsorted(keys, key))
    return row if row < keys.size and int(keys[row]) == key and not column.ambiguous[row] else -1


def _token_bits(token: int) -> int:
    """The fingerprint under which a declared token id is kept."""
    return xxhash.xxh3_64_intdigest(token.to_bytes(8, "little", signed=True))
