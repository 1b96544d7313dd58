"""Runs one side of a pair through the real command line in a process of its own, and compares two sides."""

import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from benchmarks.faults.case import Variant
from benchmarks.faults.checkouts import WEIGHTS, write_checkout
from paritrace.compare.result import Comparison

# A capture takes seconds; a hundred times that means that something hangs.
DEADLINE_SECONDS = 300


class RunFailedError(Exception):
    """A subprocess of the suite ended with another status than 0."""


@dataclass(frozen=True, kw_only=True)
class Captured:
    """One captured run and the sources it ran from."""

    run: Path
    script: Path


@dataclass
class Workplace:
    """A directory in which runs are captured; equal variants are captured once."""

    root: Path
    captured: dict[tuple[Variant, str], Captured] = field(default_factory=dict)

    def capture(self, variant: Variant, *, steps: str) -> Captured:
        known = self.captured.get((variant, steps))
        if known is not None:
            return known
        place = self.root / f"side{len(self.captured):03d}"
        script = write_checkout(variant, directory=place)
        made = Captured(run=place / "run", script=script)
        arguments = [*variant.arguments, *(["--weights", str(script.with_name(WEIGHTS))] if variant.weights else [])]
        command = ["run", "-o", str(made.run), "--level", "module", "--level", "op", "--steps", steps]
        paritrace(*command, str(script), *arguments, directory=script.parent)
        self.captured[variant, steps] = made
        return made

    def capture_again(self, variant: Variant, *, steps: str) -> Captured:
        """A run of its own, also where an equal one is there: what an identical control needs."""
        known = self.captured.pop((variant, steps), None)
        if known is not None:
            self.captured[variant, steps + " "] = known
        return self.capture(variant, steps=steps)

    def compare(self, baseline: Captured, candidate: Captured) -> tuple[Comparison, float]:
        """The comparison of two runs and the seconds it took, start of the process included."""
        started = time.perf_counter()
        output = paritrace("compare", str(baseline.run), str(candidate.run), "--json", directory=self.root)
        seconds = time.perf_counter() - started
        return msgspec.json.decode(output, type=Comparison), seconds


def paritrace(*arguments: str, directory: Path) -> str:
    """Standard output of `python -m paritrace ARGUMENTS`, run in `directory`."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "paritrace", *arguments]
    done = subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False
    )
    if done.returncode != 0:
        raise RunFailedError(f"{' '.join(command[2:])} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return done.stdout
