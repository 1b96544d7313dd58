"""PF-24: importing a large Inspect log, and where two long trajectories part: CPU against reading, growth."""

import json
import random
import tempfile
import time
from pathlib import Path

from benchmarks.measuring import Row, in_turn, print_table
from paritrace.attempts.divergence import diverge
from paritrace.attempts.importers.importing import import_attempts
from paritrace.attempts.origins import Origin
from paritrace.attempts.trace_steps import Call, steps_of
from paritrace.attempts.traces import Trace

SAMPLES = 2_000
STEPS = 5_000
MESSAGE = {"role": "assistant", "content": "x" * 1500}
USAGE = {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12}


def log(path: Path, num: int) -> Path:
    """An Inspect log of so many samples, each with four model calls and four tool calls of a few kilobytes."""
    call = {"event": "model", "model": "m", "output": {"usage": USAGE, "choices": [{"message": MESSAGE}]}}
    tool = {"event": "tool", "function": "bash", "arguments": {"command": "ls"}, "result": "y" * 500, "completed": "t"}
    samples = [
        {
            "id": f"s{number}",
            "epoch": 1,
            "scores": {"match": {"value": "CI"[number % 2]}},
            "model_usage": {"m": USAGE},
            "events": [call, tool] * 4,
        }
        for number in range(num)
    ]
    spec = {"task": "t", "model": "m", "dataset": {"sample_ids": [sample["id"] for sample in samples]}}
    path.write_text(json.dumps({"version": 2, "status": "success", "eval": spec, "samples": samples}))
    return path


def trajectory(num: int, *, kept: float) -> Trace:
    """A trajectory of which some steps are left out."""
    chance = random.Random(1)
    told = [(f"tool{chance.randrange(8)}", chance.randrange(num)) for _ in range(num)]
    left = random.Random(2)
    calls = [
        Call(name=name, arguments={"x": x}, turn=turn, origin=Origin("s"), result="ok", has_result=True)
        for turn, (name, x) in enumerate(told)
        if left.random() < kept
    ]
    return Trace(task_id="t", attempt_id="a", steps=steps_of(calls), origin=Origin("s"))


def main() -> None:
    """Print the table of PF-24."""
    short = (trajectory(STEPS // 4, kept=1.0), trajectory(STEPS // 4, kept=0.9))
    long = (trajectory(STEPS, kept=1.0), trajectory(STEPS, kept=0.9))
    with tempfile.TemporaryDirectory() as name:
        small, large = log(Path(name) / "s.json", SAMPLES // 4), log(Path(name) / "l.json", SAMPLES)
        cost = in_turn(
            {
                "json": lambda: json.loads(large.read_bytes()),
                "small": lambda: import_attempts("inspect", [small], base=Path(name)),
                "large": lambda: import_attempts("inspect", [large], base=Path(name)),
                "short": lambda: diverge(*short),
                "long": lambda: diverge(*long),
            },
            runs=5,
            clock=time.process_time,
        )
        size = large.stat().st_size
    rows = [
        Row("CPU of importing an Inspect log", cost["large"].cpu / cost["json"].cpu, "json.loads of it"),
        Row("CPU of four times the samples", cost["large"].cpu / cost["small"].cpu, "a quarter of them", ("<=", 5.0)),
        Row("CPU of four times the steps", cost["long"].cpu / cost["short"].cpu, "a quarter of them", ("<=", 6.0)),
    ]
    told = (
        f"{size / (1 << 20):.0f} MiB of log with {SAMPLES:,} samples: {cost['large'].wall:.1f} s of wall time here;"
        f" two trajectories of {STEPS:,} steps: {cost['long'].wall:.2f} s."
    )
    print_table("PF-24", rows, (told,))


if __name__ == "__main__":
    main()
