"""PF-19: a cold `paritrace --help` and `import paritrace`, against a bare Python that imports click."""

import resource
import statistics
import subprocess
import sys

from benchmarks.measuring import Row, print_table

RUNS = 15  # interleaved; a start takes some tens of milliseconds, so the median of fewer still moves
WARM_UP = 2  # the first starts read the files from disk and write the byte code
BARE = "`python -c pass` + click"
GOAL = ("<=", 2.0)

COMMANDS = {
    BARE: ["-c", "import click"],
    "`paritrace --help`": ["-m", "paritrace", "--help"],
    "`import paritrace`": ["-c", "import paritrace"],
}


def measure() -> dict[str, float]:
    """Start every command RUNS times in turn; medians of the CPU seconds by the names of COMMANDS."""
    samples: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for turn in range(WARM_UP + RUNS):
        for name, arguments in COMMANDS.items():
            seconds = cpu_seconds_of(arguments)
            if turn >= WARM_UP:
                samples[name].append(seconds)
    return {name: statistics.median(taken) for name, taken in samples.items()}


def cpu_seconds_of(arguments: list[str]) -> float:
    """Run one command to its end in a fresh interpreter; what it used of a processor, its system calls included."""
    before = _children_cpu_seconds()
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
    return _children_cpu_seconds() - before


def _children_cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Print the table of PF-19."""
    cost = measure()
    rows = [Row(name, seconds / cost[BARE], BARE, GOAL) for name, seconds in cost.items() if name != BARE]
    print_table("PF-19", rows, (f"CPU time; {BARE} takes {cost[BARE] * 1e3:.0f} ms here.",))


if __name__ == "__main__":
    main()
