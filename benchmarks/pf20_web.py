"""PF-20: the table of a million calls in the web view: a page, a filter, a deep page; beside Datasette if it is named.

`--datasette BIN` names the program in an environment of its own; it is asked the same questions over the same rows in
SQLite. Times are wall times of whole HTTP answers in one process's turn, so a busy machine shows in all of them.
"""

import argparse
import json
import secrets
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from itertools import cycle
from pathlib import Path
from urllib.parse import urlencode

import pyarrow.parquet as pq

from benchmarks.measuring import Cost, Row, in_turn, print_table
from paritrace.reports.keeping import NAMES
from paritrace.testing.grown_results import grow
from paritrace.web.application import application
from paritrace.web.serving import HOST, bound, running
from paritrace.web.shelf import key_of
from tests.web.shelves import write_pair

CALLS = 1_000_000
STEPS = 300
PAGE_SECONDS, FILTER_SECONDS = 1.0, 0.3
DEEP = 900_000
WORDS = ("ben", "end", "bend", "fol", "old", "fold", "sca", "cal", "ale", "scal", "cale", "scale")
COLUMNS = ("step", "rank", "side", "record_id", "function", "module", "file", "line", "phase", "status", "group")
START_SECONDS = 60.0


def get(port: int, path: str, headers: Mapping[str, str] | None = None) -> bytes:
    """The body of one answer, over a connection of its own."""
    connection = HTTPConnection(HOST, port, timeout=120)
    try:
        connection.request("GET", path, headers=dict(headers or {}))
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status} {body[:300]!r}")
        return body
    finally:
        connection.close()


@contextmanager
def view(folder: Path, kept: Path) -> Generator[dict[str, Callable[[], object]]]:
    """The questions, asked of the web view. A filter has new words each time: no answer is one that was kept."""
    token = secrets.token_urlsafe()
    with bound(0) as listening:
        port = int(listening.getsockname()[1])
        app = application(folder, token=token, origin=f"http://{HOST}:{port}")
        with running(app, listening):
            headers = {"Authorization": f"Bearer {token}"}
            page, rows = f"/c/{key_of(kept)}/calls", f"/api/comparisons/{key_of(kept)}/calls?limit=100&"
            turn, words = iter(range(1, 10_000)), cycle(WORDS)
            yield {
                "page of the table": lambda: get(port, page, headers),
                "filter": lambda: get(port, rows + urlencode({"text": "bend", "step": next(turn)}), headers),
                "filter by text": lambda: get(port, rows + urlencode({"text": next(words)}), headers),
                "deep page": lambda: get(port, rows + urlencode({"offset": DEEP}), headers),
            }


@contextmanager
def datasette(program: str, table: Path, folder: Path) -> Generator[dict[str, Callable[[], object]]]:
    """The same questions, asked of Datasette over the same rows."""
    database = folder / "calls.db"
    _to_sqlite(table, database)
    with bound(0) as free:
        port = int(free.getsockname()[1])
    command = [program, "serve", str(database), "-h", HOST, "-p", str(port), "--setting", "sql_time_limit_ms", "60000"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_until_it_answers(port)
        turn = iter(range(1, 10_000))
        rows = "/calls/calls.json?_size=100&_nofacet=1&"
        yield {
            "page of the table": lambda: get(port, "/calls/calls?_size=60"),
            "filter": lambda: get(port, rows + urlencode({"function__contains": "bend", "step": next(turn)})),
            "filter by text": lambda: get(port, rows + urlencode({"function__contains": "bend"})),
            "deep page": lambda: get(port, rows + urlencode({"_next": DEEP})),
        }
    finally:
        process.terminate()
        process.wait(30)


def _to_sqlite(table: Path, database: Path) -> None:
    names = ", ".join(f'"{name}"' for name in COLUMNS)
    with sqlite3.connect(database) as connection:
        connection.execute(f"create table calls ({names})")
        for batch in pq.ParquetFile(table).iter_batches(columns=list(COLUMNS), batch_size=65_536):
            values = zip(*(batch.column(name).to_pylist() for name in COLUMNS), strict=True)
            connection.executemany(f"insert into calls values ({', '.join('?' * len(COLUMNS))})", values)


def _wait_until_it_answers(port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            json.loads(get(port, "/-/versions.json"))
            return
        except (OSError, RuntimeError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def main() -> None:
    """Print the table of PF-20."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasette", metavar="BIN", help="Datasette's program, from an environment of its own")
    program = parser.parse_args().datasette
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
        kept = write_pair(folder, steps=STEPS)
        number = grow(kept, to=CALLS)
        ours = in_turn(opened.enter_context(view(folder, kept)))
        theirs = (
            {}
            if program is None
            else in_turn(opened.enter_context(datasette(program, kept / NAMES["parquet"], folder)))
        )
        size = (kept / NAMES["parquet"]).stat().st_size
    print_table("PF-20", [_row(name, cost) for name, cost in ours.items()], tuple(_notes(number, size, ours, theirs)))


def _row(name: str, cost: Cost) -> Row:
    goal = PAGE_SECONDS if "page" in name else FILTER_SECONDS
    return Row(name, cost.wall / goal, f"{goal} s", ("<=", 1.0))


def _notes(number: int, size: int, ours: Mapping[str, Cost], theirs: Mapping[str, Cost]) -> Generator[str]:
    yield f"{number:,} calls, calls.parquet {size / 1e6:.1f} MB. Wall times of whole answers: {_told(ours)}."
    yield (
        f"Datasette, the same rows in SQLite without an index: {_told(theirs)}."
        if theirs
        else "Datasette was not asked."
    )
    yield "Rows in the page: at most 61 whatever the window (tests/browser/test_view.py holds it to 100)."


def _told(costs: Mapping[str, Cost]) -> str:
    return ", ".join(f"{name} {cost.wall * 1e3:.0f} ms" for name, cost in costs.items())


if __name__ == "__main__":
    main()
