"""Reads calls.parquet through DuckDB: read-only, in memory, one file and nothing else in reach (SU-10, SU-11)."""

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
from msgspec import Struct

from paritrace.errors import EvidenceError
from paritrace.web.calls_question import WORDS, Column, Question, condition_of, order_of

SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "threads": 2,
    "memory_limit": "1GB",
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}
ORDERS_KEPT = 6  # answers whose row numbers stay in memory: 8 bytes for each row of each
FACETS = ("status", "group", "reason", "side", "difference_class", "phase", "level")
SHOWN = (*(f'"{column.value}"' for column in Column), "line", "session_id", "partner", "reordered")


class Row(Struct, frozen=True):
    """A row of the table; `n` is its number in the file, from 0. What a call has not is null."""

    n: int
    side: str
    rank: int
    session_id: str
    record_id: int
    step: int
    function: str
    module: str
    file: str
    line: int
    phase: str
    level: str
    status: str
    reason: str | None
    difference_class: str | None
    group: str | None
    partner: int | None
    reordered: bool


class Answer(Struct, frozen=True):
    """A stretch of the rows that a question names: those from `offset` on, of `total`; the file holds `all_rows`."""

    total: int
    all_rows: int
    offset: int
    rows: tuple[Row, ...]


class CallsDatabase:
    """One calls.parquet, open for questions. Threads may ask at the same time; each has a cursor of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._path = str(path)
        self._lock = threading.Lock()
        self._orders: OrderedDict[Question, Any] = OrderedDict()
        self._facets: dict[str, dict[str, int]] = {}
        self._connection = duckdb.connect(":memory:", config=SETTINGS)
        self._connection.execute("SET allowed_paths = ?", [[self._path]])
        self._connection.execute("SET enable_external_access = false")
        self._connection.execute("SET lock_configuration = true")
        self.num_rows = int(self._ask("SELECT count(*) FROM read_parquet(?)", self._path).fetchall()[0][0])

    def close(self) -> None:
        self._connection.close()

    def answer(self, question: Question, /, *, offset: int, limit: int) -> Answer:
        """Return the rows from `offset` on, at most `limit` of them.

        Raises:
            EvidenceError: Refused, `damaged_result`: the file cannot be read.
        """
        if question.is_all:
            wanted = list(range(offset, min(offset + limit, self.num_rows)))
            return Answer(self.num_rows, self.num_rows, offset, self.rows(wanted))
        order = self._order(question)
        wanted = [int(number) for number in order[offset : offset + limit]]
        return Answer(len(order), self.num_rows, offset, self.rows(wanted))

    def rows(self, numbers: list[int], /) -> tuple[Row, ...]:
        """Return the rows of these numbers, in this order."""
        if not numbers:
            return ()
        sql = f"SELECT file_row_number AS n, {', '.join(SHOWN)} FROM {_ROWS} WHERE {_near(numbers)}"
        found = {row.n: row for row in (_row(one) for one in self._ask(sql, self._path, *_bounds(numbers)).fetchall())}
        return tuple(found[number] for number in numbers)

    def place_of(self, question: Question, number: int, /) -> int | None:
        """Return where the row of this number stands in an answer, None where it is no part of it."""
        if question.is_all:
            return number if number < self.num_rows else None
        places = (self._order(question) == number).nonzero()[0]
        return int(places[0]) if len(places) else None

    def find(self, side: str, rank: int, record_id: int, session_id: str = "") -> list[Row]:
        """Return the rows of one call: one, or several where sessions of a rank use the same ids."""
        condition = "side = ? AND rank = ? AND record_id = ? AND (? = '' OR session_id = ?)"
        return self._rows_where(condition, side, rank, record_id, session_id, session_id, most=8)

    def around(self, row: Row, /, *, reach: int) -> tuple[Row, ...]:
        """Return the rows of the same session and stream before and after one, in the order of the file."""
        same = "side = ? AND session_id = ? AND stream = (SELECT stream FROM " + _ROWS + " WHERE file_row_number = ?)"
        values = (row.side, row.session_id, self._path, row.n)
        before = self._rows_where(f"{same} AND file_row_number < ?", *values, row.n, most=reach, order="n DESC")
        after = self._rows_where(f"{same} AND file_row_number > ?", *values, row.n, most=reach)
        return (*reversed(before), row, *after)

    def matching(
        self, columns: Sequence[str], equal: Mapping[str, object], /, *, most: int | None
    ) -> list[dict[str, Any]]:
        """Return these columns of the rows that have the given values; names are of `columns` only."""
        names = ", ".join(f'"{name}"' for name in columns)
        sql = f"SELECT {names} FROM {_ROWS} WHERE {_equal(columns, equal)} ORDER BY file_row_number LIMIT ?"
        found = self._ask(sql, self._path, *_plain(equal), 2**62 if most is None else most).fetchall()
        return [dict(zip(columns, row, strict=True)) for row in found]

    def count(self, columns: Sequence[str], equal: Mapping[str, object], /) -> int:
        """Return how many rows have the given values."""
        sql = f"SELECT count(*) FROM {_ROWS} WHERE {_equal(columns, equal)}"
        return int(self._ask(sql, self._path, *_plain(equal)).fetchall()[0][0])

    def whole(self, number: int, /) -> dict[str, Any]:
        """Return every column of a row, its slots as dicts."""
        cursor = self._ask(f"SELECT * FROM {_ROWS} WHERE file_row_number = ?", self._path, number)
        names = [str(one[0]) for one in cursor.description or ()]
        return dict(zip(names, cursor.fetchall()[0], strict=True))

    def facets(self) -> dict[str, dict[str, int]]:
        """Return how many rows have each word of the columns of a closed list; counted once."""
        with self._lock:
            if not self._facets:
                self._facets = self._counted()
            return self._facets

    def _counted(self) -> dict[str, dict[str, int]]:
        columns = ", ".join(f'"{name}"' for name in FACETS)
        found: dict[str, dict[str, int]] = {name: {} for name in FACETS}
        for *words, number in self._ask(f"SELECT {columns}, count(*) FROM {_ROWS} GROUP BY ALL", self._path).fetchall():
            for name, word in zip(FACETS, words, strict=True):
                if word is not None:
                    found[name][str(word)] = found[name].get(str(word), 0) + int(number)
        return found

    def sites(self, side: str, file: str, /) -> dict[int, dict[str, int]]:
        """Return line -> status -> calls of one side's file."""
        sql = f"SELECT line, status, count(*) FROM {_ROWS} WHERE side = ? AND file = ? GROUP BY ALL ORDER BY ALL"
        found: dict[int, dict[str, int]] = {}
        for line, status, number in self._ask(sql, self._path, side, file).fetchall():
            found.setdefault(int(line), {})[str(status)] = int(number)
        return found

    def _order(self, question: Question) -> Any:
        """The numbers of the rows of an answer, in its order; the last few answers are kept."""
        with self._lock:
            if question in self._orders:
                self._orders.move_to_end(question)
                return self._orders[question]
        found = self._numbers(question)
        with self._lock:
            self._orders[question] = found
            while len(self._orders) > ORDERS_KEPT:
                self._orders.popitem(last=False)
        return found

    def _numbers(self, question: Question) -> Any:
        condition, order = condition_of(question), order_of(question)
        rows = f"FROM {_ROWS} WHERE {condition.sql}"
        values = (self._path, *condition.values)
        if question.sort not in WORDS:
            return self._ask(f"SELECT file_row_number AS n {rows} ORDER BY {order}", *values).fetchnumpy()["n"]
        each = f'SELECT DISTINCT "{question.sort}" AS word {rows}'
        ranked = f"SELECT word, row_number() OVER (ORDER BY word) AS place FROM ({each})"
        named = f'SELECT "{question.sort}" AS word, file_row_number AS n {rows}'
        sql = f"SELECT n FROM ({named}) LEFT JOIN ({ranked}) USING (word) ORDER BY {order}"
        return self._ask(sql, *values, *values).fetchnumpy()["n"]

    def _rows_where(self, condition: str, *values: str | int, most: int, order: str = "n") -> list[Row]:
        columns = f"file_row_number AS n, {', '.join(SHOWN)}"
        sql = f"SELECT {columns} FROM {_ROWS} WHERE {condition} ORDER BY {order} LIMIT ?"
        return [_row(one) for one in self._ask(sql, self._path, *values, most).fetchall()]

    def _ask(self, sql: str, *values: str | int) -> Any:
        """Run one statement of this file on a cursor of its own."""
        try:
            return self._connection.cursor().execute(sql, list(values))
        except duckdb.Error as error:
            raise EvidenceError(
                f"{self._path} cannot be read: {' '.join(str(error).split())[:300]}",
                code="damaged_result",
                fix="run paritrace compare again; results can always be made anew from their runs",
            ) from error


_ROWS = "read_parquet(?, file_row_number = true)"


def _equal(columns: Sequence[str], equal: Mapping[str, object]) -> str:
    """The condition of equal values; a name that is no column is a fault of ours, not a filter."""
    names = [columns[columns.index(name)] for name in equal]
    return " AND ".join(f'"{name}" = ?' for name in names) or "TRUE"


def _plain(equal: Mapping[str, object]) -> list[str | int]:
    return [value if isinstance(value, int) else str(value) for value in equal.values()]


def _near(numbers: list[int]) -> str:
    """The condition that keeps the parts of the file with these rows, and then the rows."""
    marks = ", ".join("?" * len(numbers))
    return f"file_row_number BETWEEN ? AND ? AND file_row_number IN ({marks})"


def _bounds(numbers: list[int]) -> list[int]:
    return [min(numbers), max(numbers), *numbers]


def _row(values: tuple[Any, ...]) -> Row:
    names = ("n", *(name.strip('"') for name in SHOWN))
    return Row(**dict(zip(names, values, strict=True)))
