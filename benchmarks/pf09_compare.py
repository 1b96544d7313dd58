"""PF-9: comparing two runs that are columns already, against a bare DuckDB full outer join of their slots."""

import argparse
import statistics
import tempfile
from pathlib import Path

from benchmarks.comparing import Taken, taken
from benchmarks.measuring import Row, print_table
from benchmarks.repeated import captured, write_run

CALLS = 1_000_000
RUNS = 3  # a comparison of a million calls takes minutes


def median(found: list[Taken]) -> float:
    """Seconds of CPU."""
    return statistics.median(one.cpu for one in found)


def main() -> None:
    """Print the table of PF-9 and the throughput lines of PF-12."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=CALLS)
    parser.add_argument("--runs", type=int, default=RUNS)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        pattern = captured(place)
        for run, planted in (("a", False), ("b", True)):
            write_run(place / run, pattern, calls=asked.calls, planted=planted)
        found: dict[str, list[Taken]] = {"join": [], "memory": [], "compare": []}
        for _ in range(asked.runs):
            for task, samples in found.items():
                samples.append(taken(task, place))
    calls, gib = found["memory"][0].calls, found["compare"][0].peak_mib / 1024
    memory, whole = median(found["memory"]), median(found["compare"])
    rows = [
        Row("pairing, all differences, originating calls", memory / median(found["join"]), "the join", ("<=", 15)),
        Row("peak memory of a comparison, GiB", gib, "-", ("<=", 1)),
        Row("PF-12: pairs per second in memory, thousands", calls / memory / 1000, "-", (">=", 100)),
        Row("PF-12: pairs per second from disk, thousands", calls / whole / 1000, "-", (">=", 60)),
    ]
    told = f"{calls:,} calls a side, {pattern.slots / pattern.calls:.1f} slots each; the second half differs."
    print_table("PF-9", rows, (told, f"The join takes {median(found['join']):.2f} s of CPU, one thread."))


if __name__ == "__main__":
    main()
