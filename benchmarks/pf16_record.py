"""PF-16: `paritrace record -- CMD` against the bare command: what its start costs, and what it costs while it runs.

Both are started in an empty folder without settings of ours, and with the byte code that an installation has.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measuring import Row, print_table

RUNS = 15  # interleaved; the median of fewer moves with other load
WARM_UP = 2
GOAL_MS = 60.0
WORK = "import time\nt = time.process_time()\nwhile time.process_time() - t < 1.0: pass\nprint(time.perf_counter())"
FIRST_WORD = "import time; print(time.time_ns(), flush=True)"


def seconds_to_first_word(head: list[str], folder: str) -> float:
    """From the start of the outer process to the first statement of the command."""
    began = time.time_ns()
    return (int(_printed([*head, sys.executable, "-S", "-c", FIRST_WORD], folder)) - began) / 1e9


def _printed(command: list[str], folder: str) -> str:
    """What a command prints first; its interpreters keep their byte code, whatever is set around us."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder, env=environment)
    return done.stdout.split()[0]


def seconds_of_work() -> tuple[float, float]:
    """A second of CPU by itself and recorded: the wall time inside the command, by its own clock."""
    return _work([]), _work(None)


def _work(head: list[str] | None) -> float:
    code = WORK.replace("import time\n", "import time\nb = time.perf_counter()\n").replace(
        "print(time.perf_counter())", "print(time.perf_counter() - b)"
    )
    with tempfile.TemporaryDirectory() as scratch:
        own = recording(Path(scratch) / "run") if head is None else head
        return float(_printed([*own, sys.executable, "-S", "-c", code], scratch))


def recording(root: Path) -> list[str]:
    return [sys.executable, "-m", "paritrace", "record", "-o", str(root), "--"]


def main() -> None:
    """Print the table of PF-16."""
    bare: list[float] = []
    recorded: list[float] = []
    for turn in range(WARM_UP + RUNS):
        with tempfile.TemporaryDirectory() as scratch:
            alone = seconds_to_first_word([], scratch)
            ours = seconds_to_first_word(recording(Path(scratch) / "run"), scratch)
        if turn >= WARM_UP:
            bare.append(alone)
            recorded.append(ours)
    cost_ms = (statistics.median(recorded) - statistics.median(bare)) * 1e3
    work = [seconds_of_work() for _ in range(5)]
    steady = statistics.median(ours for _, ours in work) / statistics.median(alone for alone, _ in work)
    print_table(
        "PF-16",
        [
            Row("start cost, ms", cost_ms, "the bare command", ("<=", GOAL_MS)),
            Row("a second of work", steady, "the bare command", ("<=", 1.02)),
        ],
        (f"from the outer start to the command's first statement: {statistics.median(bare) * 1e3:.0f} ms bare.",),
    )


if __name__ == "__main__":
    main()
