"""`python -m benchmarks.same_bits.ranked`: trainings on two gloo ranks, bare and captured, all bits compared (CA-14).

Also: whether the workload dispatches the same operators in the same order (CA-34), and how many of the fingerprints
that were taken over from an earlier call no longer held (CA-32). Exit status 0: all equal on both ranks, none stale.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import warm
from benchmarks.same_bits.table import LEVELS, REWRITTEN

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "same_bits_ranked.md"
RANKS = 2
COLUMNS = ("bare again", *LEVELS, REWRITTEN)
# The whole matrix takes about three minutes on two cores that do nothing else.
DEADLINE_SECONDS = 1800


@dataclass
class Training:
    """What both ranks said of one training, by rank and column."""

    bits: dict[tuple[int, str], str] = field(default_factory=dict)
    calls: dict[tuple[int, str], tuple[Any, ...]] = field(default_factory=dict)
    reused: int = 0
    stale: int = 0
    gaps: dict[str, int] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)

    def see(self, rank: int, row: Mapping[str, Any]) -> None:
        match row.get("asked"):
            case "bits":
                self.bits[rank, row["column"]] = row["bits"]
            case "calls":
                names = ("calls", "order", "resizable", "not_resizable")
                self.calls[rank, row["column"]] = tuple(row[name] for name in names)
            case "reuse":
                self.reused += row["reused"]
                self.stale += row["stale"]
                self._see_gaps(row["gaps"])
                self.errors += [row["failure"]] if row["failure"] else []
            case _:
                self.errors += [row["error"]] if "error" in row else []

    def _see_gaps(self, gaps: Mapping[str, int]) -> None:
        for gap, number in gaps.items():
            self.gaps[gap] = self.gaps.get(gap, 0) + number

    def differing(self) -> list[str]:
        """Columns whose bits are not those of the bare training on every rank; one that was not run counts too."""
        return unequal(self.bits, COLUMNS)

    def other_calls(self) -> list[str]:
        """Levels at which the workload dispatched other operators, in another order, or with other storages."""
        return unequal(self.calls, tuple(LEVELS))

    @property
    def good(self) -> bool:
        return not (self.differing() or self.other_calls() or self.stale or self.errors) and self.reused > 0


def unequal(seen: Mapping[tuple[int, str], object], columns: Iterable[str]) -> list[str]:
    bare = [seen.get((rank, "bare")) for rank in range(RANKS)]
    return [
        column
        for column in columns
        if None in bare or any(seen.get((rank, column)) != bare[rank] for rank in range(RANKS))
    ]


def measured(names: Iterable[str], place: Path, *, python: str = sys.executable) -> Iterator[tuple[str, Training]]:
    """Runs the named trainings, several in one start; one that fails ends its start, and the others get a new one."""
    left = list(names)
    start = 0
    while left:
        found = started(left, place / f"start-{start}", python=python)
        ended = list(found)
        if not ended:
            raise SystemExit(f"the ranks did not start: see {place}")
        yield from found.items()
        left = left[left.index(ended[-1]) + 1 :]
        start += 1


def started(names: list[str], place: Path, *, python: str) -> dict[str, Training]:
    """One start of two ranks: what they said, up to and including the training that failed, if one did."""
    place.mkdir(parents=True)
    command = [python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(RANKS)]
    with (place / "output.txt").open("wb") as output:
        done = subprocess.run(
            [*command, "-m", "benchmarks.same_bits.ranked_job", str(place), *names],
            cwd=ROOT,
            env=warm.environment(),
            stdout=output,
            stderr=output,
            timeout=DEADLINE_SECONDS,
            check=False,
        )
    found = said(place)
    if done.returncode and found and not any(training.errors for training in found.values()):
        list(found.values())[-1].errors.append(f"the ranks ended with {done.returncode}")
    return found


def said(place: Path) -> dict[str, Training]:
    found: dict[str, Training] = {}
    for rank in range(RANKS):
        file = place / f"rank-{rank}.jsonl"
        for line in file.read_text(encoding="utf-8").splitlines() if file.is_file() else ():
            row = json.loads(line)
            found.setdefault(row["training"], Training()).see(rank, row)
    return found


def table(names: Iterable[str]) -> tuple[list[str], bool]:
    """Lines of a Markdown table, and whether every cell is as it must be."""
    columns = (*COLUMNS, "same calls in order", "fingerprints taken over", "of them stale")
    lines = [f"| two ranks | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}"]
    print("\n".join(lines), flush=True)
    good = True
    with tempfile.TemporaryDirectory() as place:
        for name, training in measured(names, Path(place)):
            good = good and training.good
            lines.append(f"| {name} | {' | '.join(cells(training))} |")
            print(lines[-1], flush=True)
            for said_of_it in (*training.errors, *(f"gap {gap}: {number:,}" for gap, number in training.gaps.items())):
                print(f"    {said_of_it}", file=sys.stderr, flush=True)
    return lines, good


def cells(training: Training) -> list[str]:
    differing, others = training.differing(), training.other_calls()
    same = ["**DIFFERS**" if column in differing else "equal" for column in COLUMNS]
    calls = f"**no: {', '.join(others)}**" if others else "yes"
    stale = f"**{training.stale:,}**" if training.stale else "0"
    return [*same, calls, f"{training.reused:,}" if training.reused else "**0**", stale]


def main() -> int:
    from benchmarks.same_bits.ranked_workloads import RANKED

    lines, good = table(sys.argv[1:] or list(RANKED))
    if not sys.argv[1:]:
        import torch

        where = (
            f"Two gloo ranks on the CPU with torch {torch.__version__}, both ranks equal in every cell; "
            "`python -m benchmarks.same_bits.ranked` makes this table."
        )
        RESULTS.write_text("\n".join([where, "", *lines, ""]), encoding="utf-8")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
