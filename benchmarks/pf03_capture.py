"""PF-3: what a capture costs a training step: CPU time of the process, bytes per call, peak memory."""

import argparse
import importlib
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import zstandard
from torch.utils._debug_mode import DebugMode

import paritrace
from benchmarks.encoder import Training
from benchmarks.measuring import Row, in_turn, print_table
from benchmarks.pf01_fingerprint import read

ROUNDS = 5  # every mode once per round; the ratio of a round is to the bare steps of that round
WARM_STEPS = 1  # definitions, caches
STEPS = 3
ALWAYS = (0, 1 << 30)
BARE = "bare"
GOALS = {"off": 1.01, "digest": 1.003, "module": 1.05, "callsite": 1.35, "op": 1.45, "op with moments": 1.75}
MEMORY_GOAL = 1.05
BYTES_GOALS = {"op": (200, 60), "op with moments": (800, 350)}


class Sizes(NamedTuple):
    """Bytes of a journal per call, as written and after zstd 1; `details` counts the rows with moments."""

    raw: float
    packed: float
    details: int


def modes(folder: Path) -> dict[str, Callable[[], AbstractContextManager[object]]]:
    """A context for some steps, by the name of what it captures."""
    count = iter(range(1 << 30))

    def trace(level: str, *, statistics: bool = False) -> AbstractContextManager[object]:
        name = f"{level}{'+' if statistics else ''}-{next(count)}"
        return paritrace.trace(folder / name, level=level, steps=ALWAYS, statistics=statistics)

    return {
        BARE: nullcontext,
        "off": lambda: off(folder),
        "digest": lambda: trace("digest"),
        "module": lambda: trace("module"),
        "callsite": lambda: rewritten(trace("callsite")),
        "op": lambda: trace("op"),
        "op with moments": lambda: trace("op", statistics=True),
        "DebugMode, no hashes": DebugMode,
        "DebugMode, norms of outputs": debug_norms,
        "DebugMode, norms of inputs and outputs": lambda: debug_norms(inputs=True),
    }


class Rewritten(NamedTuple):
    """The workload out of a file that was rewritten as it was imported."""

    training: Training


@contextmanager
def rewritten(trace: AbstractContextManager[object]) -> Iterator[Rewritten]:
    """Import the workload anew inside a capture, which so observes its calls."""
    name = Training.__module__
    plain = sys.modules.pop(name)
    try:
        with trace:
            yield Rewritten(importlib.import_module(name).Training())
    finally:
        sys.modules[name] = plain


@contextmanager
def off(folder: Path) -> Iterator[None]:
    """With paritrace in the program and PARITRACE_MODE=off."""
    os.environ["PARITRACE_MODE"] = "off"
    try:
        with paritrace.trace(folder / "off"):
            yield
    finally:
        del os.environ["PARITRACE_MODE"]


@contextmanager
def debug_norms(*, inputs: bool = False) -> Iterator[None]:
    """PyTorch's own debug mode, with a norm of every output."""
    with DebugMode() as mode, mode.log_tensor_hashes(hash_fn="norm", hash_inputs=inputs):
        yield


def measure(folder: Path) -> dict[str, list[float]]:
    """The CPU seconds of a step in each round, by mode; the whole process counts, so the writer's thread too."""
    training, contexts = Training(), modes(folder)
    found: dict[str, list[float]] = {name: [] for name in contexts}
    for _ in range(ROUNDS):
        for name, context in contexts.items():
            found[name].append(_round(training, context))
    return found


def _round(training: Training, context: Callable[[], AbstractContextManager[object]]) -> float:
    costs: list[float] = []
    with context() as inside:
        trained = inside.training if isinstance(inside, Rewritten) else training
        for number in range(WARM_STEPS + STEPS):
            started = time.process_time()
            trained.step()
            if number >= WARM_STEPS:
                costs.append(time.process_time() - started)
    return statistics.median(costs)


def sizes(folder: Path, level: str, *, with_moments: bool) -> Sizes:
    """What a journal of some steps takes on disk."""
    run = folder / f"size-{level}-{with_moments}"
    training = Training()
    with paritrace.trace(run, level=level, steps=ALWAYS, statistics=with_moments):
        for _ in range(STEPS):
            training.step()
    data = b"".join(path.read_bytes() for path in run.rglob("calls.jsonl"))
    calls = sum(line.startswith(b'["c"') for line in data.splitlines())
    details = sum(line.startswith(b'["d"') for line in data.splitlines())
    return Sizes(len(data) / calls, len(zstandard.ZstdCompressor(level=1).compress(data)) / calls, details)


def peak_memory(mode: str) -> float:
    """The peak memory in MiB of a process of its own that trains some steps in a mode."""
    command = [sys.executable, "-m", "benchmarks.pf03_capture", "--peak-memory", mode]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def print_peak_memory(mode: str) -> None:
    """Train some steps in this process and print its peak memory in MiB."""
    with tempfile.TemporaryDirectory() as folder:
        training = Training()
        with modes(Path(folder))[mode]() as inside:
            trained = inside.training if isinstance(inside, Rewritten) else training
            for _ in range(WARM_STEPS + STEPS):
                trained.step()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def cost_rows(found: dict[str, list[float]]) -> list[Row]:
    """The median over the rounds of the ratio to the bare step."""
    rows: list[Row] = []
    for name, costs in found.items():
        ratio = statistics.median(cost / bare for cost, bare in zip(costs, found[BARE], strict=True))
        goal = ("<=", GOALS[name]) if name in GOALS else None
        if name != BARE:
            rows.append(Row(f"CPU of a step, {name}", ratio, "the bare step", goal))
    return rows


def size_rows(measured: dict[str, Sizes]) -> list[Row]:
    """Bytes per call, against the goals in bytes."""
    rows: list[Row] = []
    for name, size in measured.items():
        raw, packed = BYTES_GOALS[name]
        rows.append(Row(f"bytes per call, {name}", size.raw, "-", ("<=", float(raw))))
        rows.append(Row(f"bytes per call after zstd 1, {name}", size.packed, "-", ("<=", float(packed))))
    return rows


def read_of_the_state() -> float:
    """Seconds to read what a digest covers once: weights, gradients and two moments of AdamW."""
    parameters = sum(parameter.numel() for parameter in Training().model.parameters())
    state = np.ones(4 * parameters * 4, dtype=np.uint8)
    return in_turn({"read": partial(read, state)})["read"].cpu


def memory_rows(names: list[str]) -> list[Row]:
    """Peak memory, each mode in processes of its own."""
    peaks = {name: peak_memory(name) for name in names}  # one process each: it does not vary
    return [
        Row(f"peak memory, {name}", peaks[name] / peaks[BARE], "the bare process", ("<=", MEMORY_GOAL))
        for name in names[1:]
    ]


def main() -> None:
    """Print the table of PF-3."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peak-memory", metavar="MODE", help="only print the peak memory of one mode, in MiB")
    mode: str | None = parser.parse_args().peak_memory
    if mode is not None:
        print_peak_memory(mode)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        measured = {level: sizes(folder, "op", with_moments=level != "op") for level in BYTES_GOALS}
        notes: list[str] = []
        skipped = {level for level, size in measured.items() if level != "op" and not size.details}
        if skipped:
            notes.append("Moments at level `op` are not evaluated: this version records none there.")
        found = {key: costs for key, costs in measure(folder).items() if key not in skipped}
        sizes_shown = {level: size for level, size in measured.items() if level not in skipped}
        rows = [
            *cost_rows(found),
            *size_rows(sizes_shown),
            *memory_rows([BARE, *(mode for mode in GOALS if mode not in skipped)]),
        ]
    bare = statistics.median(found[BARE])
    spread = (max(found[BARE]) - min(found[BARE])) / bare
    notes.append(f"The bare step takes {bare * 1e3:.0f} ms of CPU; its rounds spread over {spread:.0%}.")
    notes.append(f"Reading once what a digest covers takes {read_of_the_state() / bare:.1%} of the bare step.")
    print_table("PF-3", rows, tuple(notes))


if __name__ == "__main__":
    main()
