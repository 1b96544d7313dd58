"""Questions to calls.parquet: which calls a figure counts, what stands around a call (P9)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
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

NUMBER = "number of the row"  # beside the columns of the file while rows are chosen


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

    def page(
        self, equal: Mapping[str, object], /, *, columns: Sequence[str], begin: int, most: int
    ) -> list[tuple[int, dict[str, Any]]]:
        """Returns up to `most` rows that have these values, from the file's row number `begin` on, with their numbers.

        One group of rows is in memory at a time, and of it what is asked for by; `columns` of the rows returned.

        Raises:
            EvidenceError: Refused, `damaged_result`: the file is no table of calls.
        """
        found: list[tuple[int, dict[str, Any]]] = []
        try:
            with pq.ParquetFile(self._path) as file:
                first = 0
                for group in range(file.metadata.num_row_groups):
                    size = file.metadata.row_group(group).num_rows
                    if first + size > begin and len(found) < most:
                        chosen = _numbers(file, group, equal, least=begin - first)[: most - len(found)]
                        wide = file.read_row_group(group, columns=list(columns)).take(chosen) if chosen else None
                        rows = [] if wide is None else wide.to_pylist()
                        found += zip([first + number for number in chosen], rows, strict=True)
                    first += size
        except (OSError, ValueError, KeyError) as error:
            raise self._damaged(error) from error
        return found

    def sessions(self) -> list[tuple[Side, int, str]]:
        """Returns every session of every rank and side."""
        table = self._dataset().to_table(columns=["side", "rank", "session_id"])
        rows = table.unify_dictionaries().group_by(["side", "rank", "session_id"]).aggregate([]).to_pylist()
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
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> EvidenceError:
        return EvidenceError(
            f"{self._path} cannot be read: {error}",
            code="damaged_result",
            fix="run paritrace compare again without --format, so that calls.parquet is kept",
        )


def _numbers(file: Any, group: int, equal: Mapping[str, object], *, least: int) -> list[int]:
    """The rows of a group that have these values, from its row number `least` on."""
    narrow = file.read_row_group(group, columns=list(equal))
    numbered = narrow.append_column(NUMBER, pa.array(range(narrow.num_rows), pa.int64()))
    chosen: list[int] = numbered.filter(_condition(equal) & (pc.field(NUMBER) >= least)).column(NUMBER).to_pylist()
    return chosen


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
