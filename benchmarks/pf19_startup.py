"""PF-19: a cold `paritrace --help` and `import paritrace`, against a bare Python that imports click."""

import os
import resource
import statistics
import subprocess
import sys
import time
from typing import NamedTuple

RUNS = 15  # interleaved; a start takes some tens of milliseconds, so the median of fewer still moves
WARM_UP = 2  # the first starts read the files from disk and write the byte code
BARE = "python -c pass + click"
GOAL = 2.0

COMMANDS = {
    BARE: ["-c", "import click"],
    "paritrace --help": ["-m", "paritrace", "--help"],
    "import paritrace": ["-c", "import paritrace"],
}


class Cost(NamedTuple):
    """Medians over the runs."""

    wall_seconds: float
    cpu_seconds: float


def measure() -> dict[str, Cost]:
    """Start every command RUNS times in turn; the costs by the names of COMMANDS."""
    samples: dict[str, list[Cost]] = {name: [] for name in COMMANDS}
    for turn in range(WARM_UP + RUNS):
        for name, arguments in COMMANDS.items():
            cost = start(arguments)
            if turn >= WARM_UP:
                samples[name].append(cost)
    return {
        name: Cost(statistics.median(c.wall_seconds for c in costs), statistics.median(c.cpu_seconds for c in costs))
        for name, costs in samples.items()
    }


def start(arguments: list[str]) -> Cost:
    """Run one command to its end in a fresh interpreter."""
    before, started = _children_cpu_seconds(), time.perf_counter()
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, env=dict(os.environ), check=True)
    return Cost(time.perf_counter() - started, _children_cpu_seconds() - before)


def _children_cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Print the table of PF-19."""
    costs = measure()
    print("| PF-19 | wall ms | CPU ms | CPU time / bare | goal |\n|---|---|---|---|---|")
    for name, cost in costs.items():
        ratio = cost.cpu_seconds / costs[BARE].cpu_seconds
        goal = "" if name == BARE else f"<= {GOAL:g}"
        print(f"| {name} | {cost.wall_seconds * 1e3:.0f} | {cost.cpu_seconds * 1e3:.0f} | {ratio:.2f} | {goal} |")


if __name__ == "__main__":
    main()
