"""Comparing two runs token by token, whatever their batches are: from rows to one result (CP-27)."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from paritrace.compare.envelope import Excess
from paritrace.compare.token_rows_align import POSITION_BITS, Aligned, Column, Samples, align, column
from paritrace.compare.token_rows_choices import Parted, choices, followers, parted
from paritrace.compare.token_rows_envelope import RowEnvelope, excesses
from paritrace.compare.token_rows_judge import NOT_COMPARABLE, Judged, RowStatus, judge, scale_of
from paritrace.compare.token_rows_load import Cell, SideRows, Whole
from paritrace.compare.token_rows_result import RowChoice, RowDifference, RowOutput, RowPlace, TokenRowsFound

OUTPUTS_KEPT = 200
CHOICES_KEPT = 50
SAMPLES_KEPT = 8
SIDES = ("baseline", "candidate")


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedCell:
    """One output at one step on both sides, as `rows.parquet` holds it."""

    cell: Cell
    ours: Column
    theirs: Column
    pairs: Aligned
    judged: Judged
    excesses: dict[int, Excess]  # by place among the pairs


@dataclass(frozen=True, slots=True)
class TokenRowsCompared:
    """The result, and every row behind it."""

    found: TokenRowsFound
    cells: tuple[ComparedCell, ...]
    alone: tuple[dict[Cell, Column], dict[Cell, Column]]  # outputs of one side only
    samples: Samples


def columns_of(side: SideRows, samples: Samples) -> dict[Cell, Column]:
    """The columns of a side in the order in which its outputs were first recorded, step by step."""
    cells = sorted(side.parts, key=lambda cell: (cell[0], min(part.order[::-1] for part in side.parts[cell])))
    return {cell: column(side.parts[cell], samples) for cell in cells}


def compare_rows(
    ours: Mapping[Cell, Column], theirs: Mapping[Cell, Column], *, samples: Samples, by: RowEnvelope, kind: str
) -> TokenRowsCompared:
    """Compare all outputs that both sides have.

    Args:
        by: the envelope around the baseline's rows; without draws it has none and says nothing.
        kind: of the draws, in words.
    """
    both = {cell: (ours[cell], theirs[cell]) for cell in ours if cell in theirs}
    first = parted(both)
    cells = [_cell(cell, pair, first, by) for cell, pair in both.items()]
    alone = tuple({cell: one[cell] for cell in one if cell not in both} for one in (ours, theirs))
    told = list(choices(both, parted=first, samples=samples, later=_later(cells)))
    found = _found(cells, alone=(alone[0], alone[1]), samples=samples, told=told)
    return TokenRowsCompared(_with_kind(found, kind, by), tuple(cells), (alone[0], alone[1]), samples)


def _cell(cell: Cell, columns: tuple[Column, Column], first: Parted, by: RowEnvelope) -> ComparedCell:
    ours, theirs = columns
    pairs = align(ours, theirs)
    judged = judge(ours, theirs, pairs, followers=followers(cell[0], pairs, parted=first, output=cell[1]))
    return ComparedCell(
        cell=cell,
        ours=ours,
        theirs=theirs,
        pairs=pairs,
        judged=judged,
        excesses=dict(excesses(by, cell, pairs, judged)),
    )


def _later(cells: Iterable[ComparedCell]) -> Counter[tuple[int, int]]:
    """The rows behind the first other token of each sample that were not judged for it."""
    found: Counter[tuple[int, int]] = Counter()
    for one in cells:
        keys = one.pairs.keys[one.judged.where(RowStatus.AFTER_CHOICE)] >> POSITION_BITS
        found.update((one.cell[0], sample) for sample in keys.tolist())
    return found


def _found(
    cells: Sequence[ComparedCell],
    *,
    alone: tuple[dict[Cell, Column], dict[Cell, Column]],
    samples: Samples,
    told: Sequence[RowChoice],
) -> TokenRowsFound:
    # longer than 10 lines: one line for each key of the result
    outputs = [_output(one) for one in cells]
    lacking = [sum(column.keys.size for column in side.values()) for side in alone]
    tokens = _tokens(cells, alone)
    only = [_samples_only(tokens, side) for side in (0, 1)]
    beyond = [(one, place) for one in cells for place, told in one.excesses.items() if told.beyond]
    return TokenRowsFound(
        tokens=(len(tokens[0] & tokens[1]), len(tokens[0] - tokens[1]), len(tokens[1] - tokens[0])),
        aligned=sum(one.aligned for one in outputs),
        agree=sum(one.agree for one in outputs),
        differ=sum(one.differ for one in outputs),
        after_choice=sum(one.after_choice for one in outputs),
        not_comparable=dict(sum((Counter(one.not_comparable) for one in outputs), Counter[str]())),
        ambiguous=sum(one.ambiguous for one in outputs),
        only_baseline=sum(one.only_baseline for one in outputs) + lacking[0],
        only_candidate=sum(one.only_candidate for one in outputs) + lacking[1],
        outputs=tuple(outputs[:OUTPUTS_KEPT]),
        choices=tuple(told[:CHOICES_KEPT]),
        num_choices=len(told),
        first=_first(cells, samples),
        largest=_largest(cells, samples),
        samples_only={side: _names(only[number], samples) for number, side in enumerate(SIDES) if only[number]},
        num_samples_only={side: len(only[number]) for number, side in enumerate(SIDES) if only[number]},
        judged=sum(len(one.excesses) for one in cells),
        beyond=len(beyond),
        first_beyond=_first_of(beyond, samples),
    )


def _with_kind(found: TokenRowsFound, kind: str, by: RowEnvelope) -> TokenRowsFound:
    rate = None if by.envelope is None else by.envelope.false_rate
    return replace(found, kind=kind, num_draws=by.num_draws, false_rate=rate, not_judged=by.why)


Tokens = tuple[set[tuple[int, int]], set[tuple[int, int]]]


def _tokens(cells: Sequence[ComparedCell], alone: tuple[dict[Cell, Column], dict[Cell, Column]]) -> Tokens:
    """The tokens of each side, as (step, key)."""
    found: Tokens = (set(), set())
    for one in cells:
        found[0].update((one.cell[0], key) for key in one.ours.keys.tolist())
        found[1].update((one.cell[0], key) for key in one.theirs.keys.tolist())
    for side, columns in zip(found, alone, strict=True):
        side.update((cell[0], key) for cell, column in columns.items() for key in column.keys.tolist())
    return found


def _samples_only(tokens: Tokens, side: int) -> list[int]:
    """The samples that this side alone has, at a step that both have rows of."""
    steps = {step for step, _ in tokens[0]} & {step for step, _ in tokens[1]}
    held = [{(step, key >> POSITION_BITS) for step, key in one if step in steps} for one in tokens]
    return sorted({sample for _, sample in held[side] - held[1 - side]})


def _names(codes: Sequence[int], samples: Samples) -> tuple[str, ...]:
    return tuple(samples.names[code] for code in codes[:SAMPLES_KEPT])


def _output(one: ComparedCell) -> RowOutput:
    judged = one.judged
    differing = judged.where(RowStatus.DIFFERS)
    known = judged.errors[np.isfinite(judged.errors) & ~judged.where(RowStatus.AGREES)]
    reasons = {why: int(judged.where(status).sum()) for status, why in NOT_COMPARABLE.items()}
    return RowOutput(
        step=one.cell[0],
        output=one.cell[1],
        aligned=int(one.pairs.keys.size),
        agree=int(judged.where(RowStatus.AGREES).sum()),
        differ=int(differing.sum()),
        after_choice=int(judged.where(RowStatus.AFTER_CHOICE).sum()),
        not_comparable={why: number for why, number in reasons.items() if number},
        ambiguous=int(one.pairs.ambiguous.size),
        only_baseline=int(one.pairs.only_ours.size),
        only_candidate=int(one.pairs.only_theirs.size),
        largest=float(known.max()) if known.size else None,
        non_finite=int(judged.non_finite.sum()),
        scale=scale_of(one.ours, one.theirs, one.pairs, differing),
    )


def _first(cells: Sequence[ComparedCell], samples: Samples) -> RowDifference | None:
    """The first row that differs, in the baseline's order of execution; of one call the lowest position."""
    return _first_of([(one, int(place)) for one in cells for place in _differing(one)], samples)


def _differing(one: ComparedCell) -> Whole:
    """The rows of an output among which its first difference is: of the earliest call, at the lowest position."""
    found = np.flatnonzero(one.judged.where(RowStatus.DIFFERS))
    if not found.size:
        return found
    orders = np.array([part.order[1] for part in one.ours.parts])[one.ours.part[one.pairs.ours[found]]]
    found = np.compress(orders == orders.min(), found)
    positions = one.pairs.keys[found] & ((1 << POSITION_BITS) - 1)
    return np.compress(positions == positions.min(), found)


def _first_of(rows: Sequence[tuple[ComparedCell, int]], samples: Samples) -> RowDifference | None:
    if not rows:
        return None
    one, place = min(rows, key=lambda row: _moment(row[0], row[1], samples))
    return _difference(one, place, samples)


def _moment(one: ComparedCell, place: int, samples: Samples) -> tuple[int, int, int, int, str]:
    part = one.ours.part_of(int(one.pairs.ours[place]))
    sample, position = samples.of_key(int(one.pairs.keys[place]))
    return one.cell[0], part.order[1], part.rank, position, sample


def _largest(cells: Sequence[ComparedCell], samples: Samples) -> RowDifference | None:
    """The row with the largest error; of equal ones the first."""
    best: tuple[ComparedCell, int] | None = None
    most = 0.0
    for one in cells:
        errors = np.where(np.isfinite(one.judged.errors), one.judged.errors, 0.0)
        if errors.size and float(errors.max()) > most:
            best, most = (one, int(errors.argmax())), float(errors.max())
    return None if best is None else _difference(*best, samples)


def _difference(one: ComparedCell, place: int, samples: Samples) -> RowDifference:
    sample, position = samples.of_key(int(one.pairs.keys[place]))
    error, norm = float(one.judged.errors[place]), float(one.judged.norms[place])
    told = one.excesses.get(place)
    return RowDifference(
        step=one.cell[0],
        output=one.cell[1],
        sample=sample,
        position=position,
        error=error if np.isfinite(error) else None,
        norm_ratio=norm if np.isfinite(norm) else None,
        baseline=_place(one.ours, int(one.pairs.ours[place])),
        candidate=_place(one.theirs, int(one.pairs.theirs[place])),
        values=_values(one, place),
        ratio=None if told is None else told.ratio,
        reached=None if told is None else told.reached,
        expected=None if told is None else told.expected,
    )


def _values(one: ComparedCell, place: int) -> tuple[float, float] | None:
    """Both numbers, where a row is one number."""
    rows = ((one.ours, int(one.pairs.ours[place])), (one.theirs, int(one.pairs.theirs[place])))
    if any(column.part_of(row).features != 1 or not column.values.shape[1] for column, row in rows):
        return None
    left, right = (float(column.values[row, 0]) for column, row in rows)
    return (left, right) if np.isfinite(left) and np.isfinite(right) else None


def _place(column: Column, row: int) -> RowPlace:
    part = column.part_of(row)
    return RowPlace(rank=part.rank, call=part.call, row=int(part.rows[int(column.at[row])]), microbatch=part.microbatch)
