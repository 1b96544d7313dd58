"""PF-5: the journal's writer against encoding and writing the same records in a plain loop."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import msgspec
import zstandard

from benchmarks.journals import captured_calls
from benchmarks.measuring import RUNS, Row, print_table
from paritrace.capture.settings import QueueFull
from paritrace.capture.writer import BATCH_RECORDS, JournalWriter
from paritrace.evidence.calls import Call
from paritrace.files import LOCAL

REPEATS = 40


def bare(path: Path, records: list[Call]) -> float:
    """Encode half a thousand records, write, and so on."""
    encoder = msgspec.json.Encoder()
    with path.open("wb", buffering=0) as file:
        for start in range(0, len(records), BATCH_RECORDS):
            file.write(encoder.encode_lines(records[start : start + BATCH_RECORDS]))
    return 0.0


def packed(path: Path, records: list[Call]) -> float:
    """The same with zstd 1 in between."""
    encoder = msgspec.json.Encoder()
    compressor = zstandard.ZstdCompressor(level=1).compressobj()
    with path.open("wb", buffering=0) as file:
        for start in range(0, len(records), BATCH_RECORDS):
            file.write(compressor.compress(encoder.encode_lines(records[start : start + BATCH_RECORDS])))
        file.write(compressor.flush())
    return 0.0


def writer(path: Path, records: list[Call]) -> float:
    """Through the queue and the writer's thread, until all is in the file; seconds of the caller's side."""
    journal = JournalWriter(LOCAL.append_new(path), max_bytes=1 << 40, queue_full=QueueFull.BLOCK)
    journal.start()
    started = time.thread_time()
    for record in records:
        journal.put(record)
    caller = time.thread_time() - started
    journal.drain()
    journal.close(end=lambda: [records[0]])  # a journal always ends with a line
    return caller


def main() -> None:
    """Print the table of PF-5."""
    things: dict[str, Callable[[Path, list[Call]], float]] = {"bare": bare, "packed": packed, "writer": writer}
    cpu: dict[str, list[float]] = {name: [] for name in things}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        records = captured_calls(folder) * REPEATS
        for run in range(RUNS + 1):
            for key, thing in things.items():
                started = time.process_time()
                caller = thing(folder / f"{key}-{run}", records)
                if run:
                    cpu[key].append(time.process_time() - started - caller)
                (folder / f"{key}-{run}").unlink()
    cost = {key: median(values) for key, values in cpu.items()}
    rows = [
        Row("speed of the writer's thread", cost["bare"] / cost["writer"], "bare", (">=", 0.85)),
        Row("speed with zstd 1 in the loop", cost["bare"] / cost["packed"], "bare"),
    ]
    per_record = cost["writer"] / len(records) * 1e6
    print_table("PF-5", rows, (f"{len(records):,} records; the writer takes {per_record:.2f} us of CPU for one.",))


if __name__ == "__main__":
    main()
