"""Comparisons of long runs, each in a process of its own, so that its peak memory is its own (PF-9 to PF-12)."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from paritrace.evidence import codec

TIMEOUT_SECONDS = 1500
Work = Callable[[], int]


class Taken(msgspec.Struct, frozen=True):
    """What one piece of work took in its process: seconds, and MiB at the most; `workers_cpu` in those it started."""

    cpu: float
    wall: float
    peak_mib: float
    calls: int = 0
    workers_cpu: float = 0.0


def taken(task: str, *arguments: object) -> Taken:
    """Run a task of `TASKS` in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.comparing", task, *map(str, arguments)],
        stdout=subprocess.PIPE,
        check=True,
        timeout=TIMEOUT_SECONDS,
    )
    return msgspec.json.decode(done.stdout, type=Taken)


def _decode(place: Path) -> Work:
    """A bare typed decode of both journals, line by line; nothing is kept."""

    def work() -> int:
        for journal in (_journal(place / "a"), _journal(place / "b")):
            with journal.open("rb") as file:
                for line in file:
                    (codec.decode_row if line[0] == codec.ROW_START else codec.decode_mark)(line)
        return 0

    return work


def _compare(place: Path) -> Work:
    """The whole comparison of two runs from their journals: the result document, rows unread."""
    from paritrace.compare.engine import compare
    from paritrace.runs.reading import open_run

    return lambda: compare(open_run(place / "a"), open_run(place / "b")).result.counts.calls_baseline


def _workers(place: Path) -> Work:
    """The same by two processes; wall time is what counts."""
    from paritrace.compare.engine import compare
    from paritrace.process.pool import LocalPool
    from paritrace.runs.reading import open_run

    runs = (open_run(place / "a"), open_run(place / "b"))
    return lambda: compare(*runs, pool=LocalPool(2)).result.counts.calls_baseline


def _one_worker(place: Path) -> Work:
    from paritrace.compare.engine import compare
    from paritrace.process.pool import LocalPool
    from paritrace.runs.reading import open_run

    runs = (open_run(place / "a"), open_run(place / "b"))
    return lambda: compare(*runs, pool=LocalPool(1)).result.counts.calls_baseline


def _in_memory(place: Path) -> Work:
    """Both sides loaded; what is left is pairing, every difference, originating calls and the summary."""
    import gc

    from paritrace.compare.load import load
    from paritrace.compare.rank_jobs import lines_of
    from paritrace.compare.rank_summary import summarise
    from paritrace.compare.ranks import compare_rank
    from paritrace.compare.settings import Settings
    from paritrace.runs.reading import open_run

    gc.disable()
    runs = [open_run(place / name) for name in ("a", "b")]
    ours, theirs = (load(run, run.sessions[0], settings=Settings(), samples=False) for run in runs)

    def work() -> int:
        of = compare_rank(ours, theirs, settings=Settings(), lines=lines_of(*runs))
        return summarise(of).counts.calls_baseline

    return work


def _join(place: Path) -> Work:
    """A bare full outer join in DuckDB of the same two tables: one row for each slot, by call and place."""
    import duckdb
    import numpy as np
    import pyarrow as pa

    from paritrace.compare.load import load
    from paritrace.compare.settings import Settings
    from paritrace.runs.reading import open_run

    connection = duckdb.connect()
    for name, table in (("a", "ours"), ("b", "theirs")):
        run = open_run(place / name)
        calls = load(run, run.sessions[0], settings=Settings()).calls
        counts = np.diff(calls.column("first"))
        columns = {"call": np.repeat(calls.column("id"), counts), "bits": calls.column("bits")}
        columns["place"] = np.arange(len(columns["bits"])) - np.repeat(calls.column("first")[:-1], counts)
        connection.register(table, pa.table(columns))
    connection.execute("SET threads = 1")

    def work() -> int:
        query = (
            "SELECT count(*), sum((ours.bits = theirs.bits)::INT) FROM ours FULL OUTER JOIN theirs USING (call, place)"
        )
        found: tuple[int, int] = connection.execute(query).fetchone() or (0, 0)
        return found[0]

    return work


TASKS: dict[str, Callable[[Path], Work]] = {
    "decode": _decode,
    "join": _join,
    "memory": _in_memory,
    "compare": _compare,
    "one worker": _one_worker,
    "two workers": _workers,
}


def main() -> None:
    """One task: prints what it took as JSON, what it needs before it starts left out."""
    work = TASKS[sys.argv[1]](Path(sys.argv[2]))
    started, wall = time.process_time(), time.perf_counter()
    calls = work()
    cpu, wall = time.process_time() - started, time.perf_counter() - wall
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    workers = resource.getrusage(resource.RUSAGE_CHILDREN)
    workers_cpu = workers.ru_utime + workers.ru_stime
    print(json.dumps({"cpu": cpu, "wall": wall, "peak_mib": peak, "calls": calls, "workers_cpu": workers_cpu}))


def _journal(run: Path) -> Path:
    return next((run / "sessions").glob("*/calls.jsonl"))


if __name__ == "__main__":
    main()
