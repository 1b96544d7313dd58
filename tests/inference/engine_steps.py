"""Writes a log and a trace of one engine: synthetic, after the words that vLLM uses; no engine was run."""

import json
import random
from collections.abc import Sequence
from pathlib import Path

from paritrace.inference.execution_ranges import Scheduled

LABEL = "synthetic: written by a test generator, no engine was run"


def steps(number: int, *, seed: int, largest: int = 40) -> list[Scheduled]:
    """Returns what a scheduler might have scheduled, step by step: prompts come, are decoded, and leave."""
    draws = random.Random(seed)
    running, made = 0, []
    for _ in range(number):
        arriving = draws.choice((0, 0, 0, 1, 2))
        tokens = sum(draws.randrange(1, 2000) for _ in range(arriving))
        made.append(Scheduled(arriving, tokens, running, running))
        running = max(0, min(largest, running + arriving - draws.choice((0, 0, 1))))
    return made


def range_name(step: Scheduled, *, older: bool = False) -> str:
    """Returns the name that an engine gives a step's range."""
    if older:
        return f"execute_new_{step.context_requests}_cached_{step.generation_requests}"
    return (
        f"execute_context_{step.context_requests}({step.context_tokens})"
        f"_generation_{step.generation_requests}({step.generation_tokens})"
    )


def log_line(number: int, step: Scheduled) -> str:
    """Returns the engine's own line of a step, with its iteration-details flag."""
    return (
        f"INFO 11-30 12:00:{number % 60:02} [core.py:300] (EngineCore_0 pid=9) Iteration({number}): "
        f"{step.context_requests} context requests, {step.context_tokens} context tokens, "
        f"{step.generation_requests} generation requests, {step.generation_tokens} generation tokens, "
        f"iteration elapsed time: {10 + number % 7}.25 ms"
    )


def write_log(path: Path, made: Sequence[Scheduled], *, without: int | None = None) -> Path:
    """Writes a log of the steps, one line removed where `without` names it."""
    lines = [log_line(number, step) for number, step in enumerate(made) if number != without]
    path.write_text("\n".join([f"# {LABEL}", *lines]) + "\n")
    return path


def write_trace(path: Path, made: Sequence[Scheduled], *, older: bool = False) -> Path:
    """Writes a trace with a range, a launch and a kernel for each step."""
    events: list[dict[str, object]] = []
    for number, step in enumerate(made):
        start = 1000 + 100 * number
        here: dict[str, object] = {"ph": "X", "pid": 9, "tid": 1}
        events += [
            {**here, "cat": "user_annotation", "name": range_name(step, older=older), "ts": start, "dur": 80},
            {
                **here,
                "cat": "cuda_runtime",
                "name": "cudaLaunchKernel",
                "ts": start + 5,
                "dur": 5,
                "args": {"correlation": number + 1},
            },
            {
                "ph": "X",
                "cat": "kernel",
                "name": "k",
                "pid": 0,
                "tid": 7,
                "ts": start + 20,
                "dur": 40,
                "args": {"correlation": number + 1, "device": 0, "stream": 7},
            },
        ]
    path.write_text(json.dumps({"label": LABEL, "traceEvents": events}))
    return path
