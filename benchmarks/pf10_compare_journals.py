"""PF-10: comparing two runs from their journals, against a bare typed decode of both files."""

import argparse
import statistics
import tempfile
from pathlib import Path

from benchmarks.comparing import Taken, taken
from benchmarks.measuring import Row, print_table
from benchmarks.repeated import captured, write_run

CALLS = 200_000
RUNS = 5


def main() -> None:
    """Print the table of PF-10."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=CALLS)
    parser.add_argument("--runs", type=int, default=RUNS)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        pattern = captured(place)
        for run, planted in (("a", False), ("b", True)):
            write_run(place / run, pattern, calls=asked.calls, planted=planted)
        found: dict[str, list[Taken]] = {"decode": [], "compare": []}
        for _ in range(asked.runs):
            for task, samples in found.items():
                samples.append(taken(task, place))
    cpu = {task: statistics.median(one.cpu for one in samples) for task, samples in found.items()}
    calls = found["compare"][0].calls
    bytes_per_call = found["compare"][0].peak_mib * 2**20 / (2 * calls)
    rows = [
        Row("a comparison from journals", cpu["compare"] / cpu["decode"], "bare decode", ("<=", 2)),
        Row("peak memory, bytes for each call of both sides", bytes_per_call, "-"),
    ]
    print_table("PF-10", rows, (f"{calls:,} calls a side; the bare decode takes {cpu['decode']:.2f} s of CPU.",))


if __name__ == "__main__":
    main()
