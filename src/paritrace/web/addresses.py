"""The addresses of pages, and what the words and numbers of a page lead to (P9)."""

from urllib.parse import quote, urlencode

from paritrace.compare.result import Comparison
from paritrace.compare.rows import Side
from paritrace.errors import ParitraceError
from paritrace.reports.explained import behind
from paritrace.reports.html.page import CallRef
from paritrace.web.calls_database import Row


class ServerLinks:
    """Links of the pages of one comparison. `runs`: side -> key of its run, "" where it is not on the shelf."""

    def __init__(self, key: str, comparison: Comparison, *, has_calls: bool, runs: dict[str, str]) -> None:
        self.home = f"/c/{key}/"
        self._comparison = comparison
        self._has_calls = has_calls
        self._runs = runs

    def evidence(self, anchor: str, /) -> str:
        try:
            behind(self._comparison, anchor)
        except ParitraceError:
            return ""
        return f"{self.home}f/{quote(anchor, safe='')}"

    def call(self, call: CallRef, /) -> str:
        return self.call_of(call.side, call.rank, call.record_id)

    def call_of(self, side: str, rank: int, record_id: int, session_id: str = "") -> str:
        """A call's page; with the session, where ids of several sessions may be alike."""
        if not self._has_calls or record_id < 0:
            return ""
        query = "?" + urlencode({"session_id": session_id}) if session_id else ""
        return f"{self.home}call/{side}/{rank}/{record_id}{query}"

    def row(self, row: Row) -> str:
        return self.call_of(row.side, row.rank, row.record_id, row.session_id)

    def partner(self, row: Row) -> str:
        """The page of the call that a row is paired with, "" without one."""
        other = Side.CANDIDATE if row.side == Side.BASELINE else Side.BASELINE
        return "" if row.partner is None else self.call_of(other, row.rank, row.partner)

    def source(self, side: str, file: str, line: int, /) -> str:
        query = urlencode({"side": side, "file": file, "line": line})
        return f"{self.home}source?{query}#{side}-{line}"

    def calls(self, **wanted: object) -> str:
        """The table of calls with some filters set."""
        given = {name: value for name, value in wanted.items() if value not in (None, "")}
        return f"{self.home}calls" + ("?" + urlencode(given) if given else "")

    def run(self, side: str, /) -> str:
        key = self._runs.get(side, "")
        return f"/r/{key}/" if key else ""
