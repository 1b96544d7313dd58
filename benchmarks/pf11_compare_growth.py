"""PF-11: how a comparison grows with its calls, against itself, and what a second worker gives."""

import argparse
import statistics
import tempfile
from pathlib import Path

from benchmarks.comparing import taken
from benchmarks.measuring import Row, print_table
from benchmarks.repeated import Pattern, captured, write_run

SIZES = (10_000, 100_000, 1_000_000)
RANKS, CALLS_OF_A_RANK = 8, 10_000
RUNS = 3


def both(place: Path, pattern: Pattern, *, calls: int, ranks: int = 1) -> Path:
    """Two runs that differ from their middle on."""
    for name, planted in (("a", False), ("b", True)):
        write_run(place / name, pattern, calls=calls, planted=planted, ranks=ranks)
    return place


def main() -> None:
    """Print the table of PF-11."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=SIZES[-1])
    parser.add_argument("--runs", type=int, default=RUNS)
    asked = parser.parse_args()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        pattern = captured(Path(name))
        per_call: dict[int, float] = {}
        for size in (size for size in SIZES if size <= asked.largest):
            place = both(Path(name) / str(size), pattern, calls=size)
            found = [taken("compare", place) for _ in range(asked.runs)]
            per_call[size] = statistics.median(one.cpu for one in found) / found[0].calls
        for size in list(per_call)[1:]:
            what = f"CPU for a call, {size:,} calls a side"
            rows.append(Row(what, per_call[size] / per_call[SIZES[0]], f"{SIZES[0]:,} calls", ("<=", 1.3)))
        ranks = both(Path(name) / "ranks", pattern, calls=CALLS_OF_A_RANK, ranks=RANKS)
        pairs = [(taken("one worker", ranks), taken("two workers", ranks)) for _ in range(asked.runs)]
    gain = statistics.median(one.wall / two.wall for one, two in pairs)
    rows.append(Row(f"speed of two workers, {RANKS} ranks (wall time)", gain, "one worker", (">=", 1.7)))
    split = statistics.median(one.cpu + one.workers_cpu for one, _ in pairs) / statistics.median(
        two.cpu + two.workers_cpu / 2 for _, two in pairs
    )
    rows.append(Row("the same by CPU time: what is left of a half each", split, "one worker"))
    told = f"A call of {SIZES[0]:,} takes {per_call[SIZES[0]] * 1e6:.0f} us of CPU, both sides."
    print_table("PF-11", rows, (told,))


if __name__ == "__main__":
    main()
