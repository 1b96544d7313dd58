"""PF-23: a summary of 100,000 attempts: time against reading the file as JSON, growth, memory per attempt."""

import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measuring import Row, in_turn, print_table
from paritrace import attempts

SMALL, LARGE = 25_000, 100_000
MIB = 1 << 20


def written(path: Path, num: int) -> Path:
    """A manifest of so many attempts, four at a task, some without verdict or usage."""
    chance = random.Random(1)
    listed = [one(chance, number) for number in range(num)]
    head = {
        "format": "paritrace-attempts",
        "version": "1.0",
        "configurations": [{"id": name, "attempts_complete": True, "relation": "independent"} for name in "ab"],
    }
    path.write_text(json.dumps(head | {"attempts": listed}))
    return path


def one(chance: random.Random, number: int) -> dict[str, object]:
    """One entry as an importer writes it."""
    entry: dict[str, object] = {
        "attempt_id": f"attempt-{number}",
        "configuration_id": "ab"[number % 2],
        "task_id": f"task-{number // 8}",
        "task_revision": "1",
        "execution": "succeeded",
        "stop": {"kind": "finished"},
        "duration_seconds": chance.random() * 100,
        "fields": {"model": "m", "harness": "1.0"},
    }
    if chance.random() < 0.9:
        judged = {"evaluator": {"id": "tests", "version": "1"}, "verdict": chance.choice(("pass", "fail"))}
        entry["evaluations"] = [judged]
    if chance.random() < 0.9:
        usage = {
            "model": "m",
            "input_tokens": chance.randrange(10**6),
            "output_tokens": 10,
            "input_includes_cache": True,
        }
        cost = {"amount": chance.random(), "basis": {"kind": "provider_reported"}}
        entry["accounting"] = {"source": "harness_reported", "usage": [usage], "costs": [cost], "complete": True}
    return entry


def peak_bytes(path: Path) -> int:
    """The largest resident memory of a process of its own that summarises a manifest."""
    code = (
        "import sys\nfrom paritrace import attempts\n"
        "attempts.summarize(attempts.load(sys.argv[1]))\n"
        "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    return int(done.stdout) * 1024  # ru_maxrss would be the larger one of this process, from before the exec


def main() -> None:
    """Print the table of PF-23."""
    with tempfile.TemporaryDirectory() as name:
        small, large = written(Path(name) / "s.json", SMALL), written(Path(name) / "l.json", LARGE)
        cost = in_turn(
            {
                "json": lambda: json.loads(large.read_bytes()),
                "small": lambda: attempts.summarize(attempts.load(small)),
                "large": lambda: attempts.summarize(attempts.load(large)),
                "compare": lambda: attempts.compare(attempts.load(large)),
            },
            runs=5,
            clock=time.process_time,
        )
        size = large.stat().st_size
        memory = {path: peak_bytes(path) for path in (small, large)}
    growth = cost["large"].cpu / cost["small"].cpu
    per_attempt = (memory[large] - memory[small]) / (LARGE - SMALL)
    rows = [
        Row("CPU of a summary of 100,000 attempts", cost["large"].cpu / cost["json"].cpu, "json.loads of the file"),
        Row("CPU of a comparison of them", cost["compare"].cpu / cost["json"].cpu, "the same"),
        Row("CPU of four times the attempts", growth, "a quarter of them", ("<=", 4.8)),
        Row("bytes of memory that an attempt adds", per_attempt / (size / LARGE), "its bytes in the file", ("<=", 6.0)),
    ]
    told = (
        f"{size / MIB:.0f} MiB of manifest; a summary takes {cost['large'].wall:.1f} s of wall time here,"
        f" and {memory[large] / MIB:.0f} MiB at its peak, {memory[small] / MIB:.0f} MiB with a quarter of the attempts."
    )
    print_table("PF-23", rows, (told,))


if __name__ == "__main__":
    main()
