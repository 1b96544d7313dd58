"""PF-20: the table of a million calls in the web view: a page, a filter, a deep page; beside Datasette if it is named.

The calls have 300 functions, 800 modules and 120 files in no order, so that no column is easy. `--chromium` opens the
table in a browser too and says when it first paints. `--datasette BIN` names that program in an environment of its own;
it is asked the same questions over the same rows in SQLite. Times are wall times of whole HTTP answers in one process's
turn, so a busy machine shows in all of them.
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
from random import Random
from typing import Any
from urllib.parse import urlencode

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measuring import Cost, Row, in_turn, print_table
from paritrace.loopback.listening import HOST, bound, running
from paritrace.reports.keeping import NAMES
from paritrace.reports.shelf import key_of
from paritrace.testing.grown_results import ROWS_OF_A_GROUP, grow, restate
from paritrace.web.application import application
from tests.web.shelves import write_pair

CALLS = 1_000_000
STEPS = 300
PAGE_SECONDS, FILTER_SECONDS = 1.0, 0.3
DEEP = 900_000
OPERATORS = ("add", "mul", "mm", "bmm", "softmax", "layer_norm", "gelu", "copy_", "view", "embedding")
NAMES_OF = {
    "function": [f"aten.{OPERATORS[i % 10]}{i}.default" for i in range(300)],
    "module": [f"model.layers.{i // 8}.block{i % 8}.self_attn.proj" for i in range(800)],
    "file": [f"src/pkg/sub{i % 20}/file{i}.py" for i in range(120)],
}
WORDS = (
    "gelu",
    "softm",
    "layers.9",
    "sub1/",
    "mm1",
    "embedd",
    "block7",
    "file11",
    "norm",
    "layers.42",
    "view2",
    "copy",
)
COLUMNS = ("step", "rank", "side", "record_id", "function", "module", "file", "line", "phase", "status", "group")
START_SECONDS = 60.0


def name(kept: Path) -> None:
    """Give the calls of a kept comparison many names, in no order."""
    path, random = kept / NAMES["parquet"], Random(1)
    table: Any = pq.read_table(path)
    for column, pool in NAMES_OF.items():
        place = table.schema.get_field_index(column)
        field = table.schema.field(place)
        table = table.set_column(place, field, pa.array(random.choices(pool, k=table.num_rows)).cast(field.type))
    pq.write_table(table, path, compression="zstd", row_group_size=ROWS_OF_A_GROUP)
    restate(kept)


def first_paint(port: int, token: str, page: str) -> float:
    """Milliseconds from asking for the table to the first paint, in a headless Chromium."""
    from tests.browser.chromium import started  # of the slow tests' requirements

    with started() as browser:
        seen = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
        seen.goto(f"http://{HOST}:{port}/?token={token}")
        seen.goto(f"http://{HOST}:{port}{page}")
        return float(seen.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"))


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
def view(folder: Path, kept: Path, *, paints: list[float] | None) -> Generator[dict[str, Callable[[], object]]]:
    """The questions, asked of the web view. A filter has new words each time: no answer is one that was kept.

    The first paint goes into `paints`, where it is wanted.
    """
    token = secrets.token_urlsafe()
    with bound(0) as listening:
        port = int(listening.getsockname()[1])
        app = application(folder, token=token, origin=f"http://{HOST}:{port}")
        with running(app, listening):
            headers = {"Authorization": f"Bearer {token}"}
            page, rows = f"/c/{key_of(kept)}/calls", f"/api/comparisons/{key_of(kept)}/calls?limit=100&"
            if paints is not None:
                paints.append(first_paint(port, token, page))
            turn, words = iter(range(1, 10_000)), cycle(WORDS)
            yield {
                "page of the table": lambda: get(port, page, headers),
                "filter": lambda: get(port, rows + urlencode({"text": "gelu", "step": next(turn)}), headers),
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
            "filter": lambda: get(port, rows + urlencode({"function__contains": "gelu", "step": next(turn)})),
            "filter by text": lambda: get(port, rows + urlencode({"function__contains": "gelu"})),
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
    parser.add_argument("--chromium", action="store_true", help="Open the table in a browser too.")
    chosen = parser.parse_args()
    program = chosen.datasette
    paints: list[float] | None = [] if chosen.chromium else None
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
        kept = write_pair(folder, steps=STEPS)
        number = grow(kept, to=CALLS)
        name(kept)
        ours = in_turn(opened.enter_context(view(folder, kept, paints=paints)))
        theirs = (
            {}
            if program is None
            else in_turn(opened.enter_context(datasette(program, kept / NAMES["parquet"], folder)))
        )
        size = (kept / NAMES["parquet"]).stat().st_size
    rows = [Row("first paint of the table", paint / 1e3 / PAGE_SECONDS, "1.0 s", ("<=", 1.0)) for paint in paints or ()]
    rows += [_row(name, cost) for name, cost in ours.items()]
    print_table("PF-20", rows, tuple(_notes(number, size, ours, theirs)))


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
