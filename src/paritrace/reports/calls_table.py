"""Questions to calls.parquet: which calls a figure counts, what stands around a call (P9)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.compute as pc
import pyarrow.dataset as ds
from msgspec import Struct

from paritrace.compare.rows import Correspondence, Side
from paritrace.errors import EvidenceError

COLUMNS = (
    "side",
    "rank",
    "session_id",
    "record_id",
    "step",
    "microbatch",
    "phase",
    "level",
    "function",
    "file",
    "line",
    "module",
    "stream",
    "scope",
    "key",
    "status",
    "correspondence",
    "basis",
    "reason",
    "partner",
    "reordered",
    "difference_class",
    "group",
)


class TableCall(Struct, frozen=True):
    """A row of calls.parquet without its slots."""

    side: Side
    rank: int
    session_id: str
    record_id: int
    step: int
    microbatch: int
    phase: str
    level: str
    function: str
    file: str
    line: int
    module: str
    stream: str
    scope: str
    key: str
    status: str
    correspondence: Correspondence
    basis: str | None
    reason: str | None
    partner: int | None
    reordered: bool
    difference_class: str | None
    group: str | None

    @property
    def identity(self) -> str:
        """The id that explain and why-not take."""
        return f"{self.side}:{self.record_id}"

    @property
    def is_paired(self) -> bool:
        return self.correspondence is Correspondence.PAIRED


class CallsTable:
    """Reads calls.parquet with filters; only what matches comes into memory."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def matching(self, equal: Mapping[str, object], /, *, most: int | None = None) -> list[TableCall]:
        """Returns the calls whose columns have the given values, in order; at most `most` of them."""
        dataset = self._dataset()
        condition = _condition(equal)
        columns = list(COLUMNS)
        table = (
            dataset.to_table(columns=columns, filter=condition)
            if most is None
            else dataset.scanner(columns=columns, filter=condition).head(most)
        )
        return [_call(row) for row in table.to_pylist()]

    def count(self, equal: Mapping[str, object], /) -> int:
        """Returns how many calls have these values."""
        return int(self._dataset().count_rows(filter=_condition(equal)))

    def sessions(self) -> list[tuple[Side, int, str]]:
        """Returns every session of every rank and side."""
        table = self._dataset().to_table(columns=["side", "rank", "session_id"])
        rows = table.group_by(["side", "rank", "session_id"]).aggregate([]).to_pylist()
        return sorted((Side(row["side"]), int(row["rank"]), str(row["session_id"])) for row in rows)

    def in_stream(self, call: TableCall) -> list[TableCall]:
        """Returns the calls of the same side and stream, in order of entering."""
        calls = self.matching(
            {"side": call.side, "session_id": call.session_id, "stream": call.stream, "level": call.level}
        )
        return sorted(calls, key=lambda other: other.record_id)

    def _dataset(self) -> Any:
        try:
            return ds.dataset(self._path, format="parquet")
        except (OSError, ValueError) as error:
            raise EvidenceError(
                f"{self._path} cannot be read: {error}",
                code="damaged_result",
                fix="run paritrace compare again without --format, so that calls.parquet is kept",
            ) from error


def _condition(equal: Mapping[str, object]) -> Any:
    condition: Any = None
    for name, value in equal.items():
        term = pc.field(name) == (str(value) if isinstance(value, str) else value)
        condition = term if condition is None else condition & term
    return condition


def _call(row: dict[str, Any]) -> TableCall:
    return msgspec.convert(row, TableCall)


def identities(calls: Sequence[TableCall], /) -> tuple[str, ...]:
    """Returns the ids of calls in the spelling that explain takes."""
    return tuple(call.identity for call in calls)
