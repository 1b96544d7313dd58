"""Tables of an Nsight Systems export: which of a name is read, and whether it is there, empty or not known (IN-11)."""

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from enum import StrEnum
from pathlib import Path
from urllib.parse import quote

from msgspec import Struct

from paritrace.errors import EvidenceError

MAGIC = b"SQLite format 3\0"
_VERSION = re.compile(r"_V(\d{1,6})\Z", re.IGNORECASE)
_BESIDE = ("-wal", "-journal")  # somebody still writes, or was stopped while writing


class Presence(StrEnum):
    """Four things that are not the same: work was recorded, none was, nobody recorded it, we cannot read it."""

    PRESENT = "present"
    EMPTY = "empty"
    ABSENT = "absent"
    UNKNOWN_VERSION = "unknown_version"


class TableFound(Struct, frozen=True):
    """The table that stands for a name.

    Attributes:
        name: what it is called in the export, with its version where it has one; "" where it is absent.
        columns: those it has.
        missing: columns without which it cannot be read.
    """

    presence: Presence
    name: str = ""
    columns: frozenset[str] = frozenset()
    missing: tuple[str, ...] = ()

    @property
    def readable(self) -> bool:
        """Whether rows can be taken from it."""
        return self.presence is Presence.PRESENT


class Export:
    """An export, open for reading alone. Close it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._tables = {str(name) for (name,) in self._rows("SELECT name FROM sqlite_master WHERE type = 'table'")}

    def close(self) -> None:
        self._connection.close()

    def find(self, name: str, /, *, needs: Sequence[str]) -> TableFound:
        """Return the table of a name: of several versions the highest, by number (V10 comes after V3)."""
        versions = {self._version(table, name): table for table in self._tables}
        versions.pop(None, None)
        if not versions:
            return TableFound(Presence.ABSENT)
        table = versions[max(version for version in versions if version is not None)]
        columns = frozenset(str(row[1]) for row in self._rows(f"PRAGMA table_info({_quoted(table)})"))
        missing = tuple(column for column in needs if column not in columns)
        if missing:
            return TableFound(Presence.UNKNOWN_VERSION, table, columns, missing)
        empty = next(self._rows(f"SELECT 1 FROM {_quoted(table)} LIMIT 1"), None) is None
        return TableFound(Presence.EMPTY if empty else Presence.PRESENT, table, columns)

    def rows(self, found: TableFound, columns: Sequence[str], /) -> Iterator[tuple[object, ...]]:
        """Yield these columns of every row; None for a column that the table has not."""
        if not found.readable:
            return
        chosen = ", ".join(_quoted(column) if column in found.columns else "NULL" for column in columns)
        yield from self._rows(f"SELECT {chosen} FROM {_quoted(found.name)}")

    def text(self, table: str, number: int, /) -> str | None:
        """Return the text with this id in a table of texts."""
        row = next(self._rows(f"SELECT value FROM {_quoted(table)} WHERE id = ?", (number,)), None)
        return str(row[0]) if row is not None and row[0] is not None else None

    def _rows(self, statement: str, values: Sequence[int] = ()) -> Iterator[tuple[object, ...]]:
        with closing(self._connection.execute(statement, values)) as cursor:
            yield from cursor

    @staticmethod
    def _version(table: str, name: str) -> int | None:
        if table.upper() == name:
            return 0
        found = _VERSION.search(table)
        return int(found[1]) if found is not None and table[: found.start()].upper() == name else None


def _quoted(name: str) -> str:
    """The name as SQL writes one, whatever it holds."""
    return '"' + name.replace('"', '""') + '"'


def open_export(path: Path, /) -> Export:
    """Open an export for reading alone; its file is not changed, and none appears beside it.

    Raises:
        EvidenceError: Refused, `bad_export`: it is no database, or a damaged one.
    """
    busy = any(path.with_name(path.name + suffix).exists() for suffix in _BESIDE)
    mode = "mode=ro" if busy else "mode=ro&immutable=1"
    address = f"file:{quote(str(path.resolve()))}?{mode}"
    connection: sqlite3.Connection | None = None
    try:
        connection = sqlite3.connect(address, uri=True, check_same_thread=False)
        connection.text_factory = _lenient
        return Export(connection)
    except sqlite3.Error as error:
        if connection is not None:
            connection.close()
        raise EvidenceError(
            f"{path} cannot be read as a database: {error}",
            code="bad_export",
            fix="export the report again: nsys export --type sqlite REPORT.nsys-rep",
        ) from None


def _lenient(data: bytes) -> str:
    return data.decode("utf-8", "replace")
