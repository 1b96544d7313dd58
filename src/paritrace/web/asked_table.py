"""The table of calls as `explain` and `why-not` read it, asked of the database that is open already (P9)."""

from collections.abc import Mapping

import msgspec

from paritrace.reports.calls_table import COLUMNS, CallsTable, TableCall
from paritrace.web.calls_database import CallsDatabase


class AskedTable(CallsTable):
    """Answers as `CallsTable` does; of a million rows in a tenth of the time."""

    def __init__(self, database: CallsDatabase) -> None:
        super().__init__(database.path)
        self._database = database

    def matching(self, equal: Mapping[str, object], /, *, most: int | None = None) -> list[TableCall]:
        return [msgspec.convert(row, TableCall) for row in self._database.matching(COLUMNS, equal, most=most)]

    def count(self, equal: Mapping[str, object], /) -> int:
        return self._database.count(COLUMNS, equal)
