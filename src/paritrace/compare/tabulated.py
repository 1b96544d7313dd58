"""The figures of draws as one table, and as bytes that can be kept (CP-10, CP-10a): pure."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from paritrace.compare.leaving_out import Table
from paritrace.compare.strengths import Strengths

Place = tuple[int, str, int]
"""A slot of the baseline: id of its call, "i" or "o", index among the call's inputs or outputs; or a figure of a step:
the step, its group ("loss", "grad_norm"), the micro-batch; or a tensor of the inventory: the step, its group and name
("gradient:fc.weight"), the micro-batch."""


class Tabulated(NamedTuple):
    """Places at which every draw could state its figures, and these: places x draws x (error, norm, bias).

    `not_finite`: the draws that somewhere have values that are not finite, where the baseline has none.
    """

    places: tuple[Place, ...]
    figures: Table
    not_finite: frozenset[int] = frozenset()


class _Kept(msgspec.Struct, array_like=True, frozen=True):
    places: tuple[Place, ...]
    num_draws: int
    figures: bytes  # float64, little-endian
    not_finite: frozenset[int]


def tabulated(
    draws: Mapping[Place, Sequence[Strengths | None]], *, not_finite: frozenset[int] = frozenset()
) -> Tabulated | None:
    """Make one table; None without any place that all draws share."""
    num_draws = max((len(found) for found in draws.values()), default=0)
    whole = tuple(place for place, found in draws.items() if len(found) == num_draws and None not in found)
    if not whole:
        return None
    return Tabulated(whole, np.asarray([draws[place] for place in whole], dtype=np.float64), not_finite)


def encoded(table: Tabulated) -> bytes:
    """A table as bytes."""
    figures = np.ascontiguousarray(table.figures, dtype="<f8").tobytes()
    return msgspec.msgpack.encode(_Kept(table.places, table.figures.shape[1], figures, table.not_finite))


def decoded(data: bytes) -> Tabulated | None:
    """The table of such bytes; None where they are none."""
    try:
        kept = msgspec.msgpack.decode(data, type=_Kept)
        shape = (len(kept.places), kept.num_draws, len(Strengths._fields))
        figures = np.frombuffer(kept.figures, dtype="<f8").reshape(shape).astype(np.float64)
        return Tabulated(kept.places, figures, kept.not_finite)
    except (msgspec.DecodeError, ValueError):
        return None
