"""The record of what a line or figure of a comparison rests on (P9)."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from paritrace.compare.result import Difference
from paritrace.compare.rows import Side
from paritrace.errors import RequestError


class Behind(Struct, frozen=True):
    """`record_ids`: (side, rank, record id) of the calls behind it; `rows`: the columns that all of them share."""

    statement: str
    facts: tuple[str, ...] = ()
    record_ids: tuple[tuple[Side, int, int], ...] = ()
    rows: Mapping[str, object] | None = None
    is_call: bool = False  # a call that must be there


def pair_of(place: Difference, /) -> tuple[tuple[Side, int, int], ...]:
    """Returns the ids of both calls of a difference, those that exist."""
    both = ((Side.BASELINE, place.baseline_record_id), (Side.CANDIDATE, place.candidate_record_id))
    return tuple((side, place.rank, record_id) for side, record_id in both if record_id >= 0)


def unknown_id(identity: str, known: Iterable[str], /) -> RequestError:
    """Returns the error for an id that stands for nothing in this result."""
    return RequestError(
        f"{identity!r} is no id of this result",
        code="no_such_id",
        fix=f"known are {', '.join(known)}, figures such as counts.paired, and calls such as candidate:123",
    )
