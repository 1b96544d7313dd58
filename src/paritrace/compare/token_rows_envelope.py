"""Rows of tokens judged by draws of the baseline, each token a place of the envelope (CP-10a, CP-27)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from paritrace.compare.envelope import MIN_DRAWS, Envelope, Excess, Place, calibrate
from paritrace.compare.strengths import NONE, Strengths
from paritrace.compare.tabulated import tabulated
from paritrace.compare.token_rows_align import POSITION_BITS, Aligned, Column, Samples, align, column
from paritrace.compare.token_rows_judge import Judged, RowStatus, judge
from paritrace.compare.token_rows_load import Cell, SideRows

MAX_PLACES = 20_000  # rows that are judged: calibrating takes some 50 µs for each, so about a second for these
OUTPUT = "o"  # how the envelope spells what a finding can be about


@dataclass(frozen=True, slots=True)
class RowEnvelope:
    """The envelope around the rows of the baseline: each token of each output is a place. `why`: why there is none."""

    envelope: Envelope | None
    numbers: Mapping[Cell, int]
    stride: int  # one token of so many is judged
    why: str = ""
    num_draws: int = 0

    def excess(self, cell: Cell, key: int, found: Strengths) -> Excess | None:
        """How far a row is out; None where the draws have no width or the row is not judged."""
        number = self.numbers.get(cell)
        if self.envelope is None or number is None or _is_left_out(key, self.stride):
            return None
        return self.envelope.excess((number, OUTPUT, key), found)


def row_envelope(origin: Mapping[Cell, Column], draws: Iterable[SideRows], *, samples: Samples) -> RowEnvelope:
    """Measure the rows of each draw against those of the run it is a draw of; draws are read one after the other."""
    numbers = {cell: number for number, cell in enumerate(origin)}
    stride = max(1, -(-sum(one.keys.size for one in origin.values()) // MAX_PLACES))
    found: dict[Place, list[Strengths | None]] = {}
    num_draws, holding = 0, 0
    for draw in draws:
        num_draws += 1
        for cell, own in origin.items() if draw.parts else ():
            if cell in draw.parts:
                for key, strength in _measured(own, column(draw.parts[cell], samples), stride):
                    known = found.setdefault((numbers[cell], OUTPUT, key), [])
                    known += [None] * (holding - len(known))
                    known.append(strength)
        holding += bool(draw.parts)
    table = tabulated({place: known for place, known in found.items() if len(known) == holding})
    envelope = None if table is None else calibrate(table)
    return RowEnvelope(envelope, numbers, stride, "" if envelope else _why(num_draws, holding), holding)


def _why(num_draws: int, holding: int) -> str:
    if not num_draws:
        return ""
    if holding < MIN_DRAWS:
        return f"{holding} of {num_draws} draws hold rows of tokens, {MIN_DRAWS} are needed"
    return "in no row do most draws differ from the baseline: no spread to judge by"


def _is_left_out(key: int, stride: int) -> bool:
    return bool((key ^ (key >> POSITION_BITS)) % stride)


def _measured(own: Column, other: Column, stride: int) -> list[tuple[int, Strengths | None]]:
    pairs = align(own, other)
    judged = judge(own, other, pairs, followers=np.zeros(pairs.keys.size, dtype=np.bool_))
    keys = pairs.keys.tolist()
    return [(key, strength_of(judged, place)) for place, key in enumerate(keys) if not _is_left_out(key, stride)]


def strength_of(judged: Judged, place: int) -> Strengths | None:
    """Error and norm of one aligned row; of 16 samples no bias is told."""
    if judged.status[place] == RowStatus.AGREES:
        return NONE
    error, norm = float(judged.errors[place]), float(judged.norms[place])
    if not np.isfinite(error) or not np.isfinite(norm) or norm <= 0.0:
        return None
    return Strengths(error, abs(float(np.log(norm))), 0.0)


def excesses(by: RowEnvelope, cell: Cell, pairs: Aligned, judged: Judged) -> list[tuple[int, Excess]]:
    """The rows of an output that have draws to be judged by, with how far they are out."""
    found: list[tuple[int, Excess]] = []
    if by.envelope is None:
        return found
    measured = np.flatnonzero(np.isin(judged.status, (RowStatus.AGREES, RowStatus.DIFFERS, RowStatus.DTYPE)))
    for place in measured.tolist():
        strength = strength_of(judged, place)
        told = None if strength is None else by.excess(cell, int(pairs.keys[place]), strength)
        if told is not None:
            found.append((place, told))
    return found
