"""Asks other tools about pairs of checkouts, through a worker in each tool's own environment (CP-18)."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE
from typing import TYPE_CHECKING, Any

from benchmarks.faults.case import Variant
from benchmarks.faults.checkouts import WEIGHTS, write_checkout
from benchmarks.faults.peers.answers import Named, frames_of

if TYPE_CHECKING:
    from collections.abc import Iterator

WORKER = Path(__file__).parent / "tools" / "worker.py"


@dataclass(frozen=True, kw_only=True)
class Side:
    """One side's checkout, and the arguments that it is started with."""

    script: Path
    arguments: tuple[str, ...]
    variant: Variant


@dataclass(frozen=True, kw_only=True)
class Peer:
    """A tool to ask. `forward_only`: it looks at the first forward pass and at nothing else."""

    name: str
    module: str
    forward_only: bool = False


PEERS = (
    Peer(name="msprobe", module="msprobe_tool"),
    Peer(name="DebugMode", module="debug_mode"),
    Peer(name="torchlens", module="torchlens_tool", forward_only=True),
)


def written(variant: Variant, *, place: Path) -> Side:
    """The checkout of one side with the arguments of its run."""
    script = write_checkout(variant, directory=place)
    weights = ("--weights", str(script.with_name(WEIGHTS))) if variant.weights else ()
    return Side(script=script, arguments=(*variant.arguments, *weights), variant=variant)


@dataclass(frozen=True, kw_only=True)
class Worker:
    """A running worker of one tool."""

    process: "subprocess.Popen[str]"

    def ask(self, baseline: Side, candidate: Side, *, place: Path) -> tuple[Named, float]:
        """What the tool names first, and the seconds that both runs and the comparison took."""
        place.mkdir(parents=True)
        job = {"place": str(place), "baseline": as_job(baseline), "candidate": as_job(candidate)}
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the worker of a tool ended with status {self.process.wait()}")
        found: dict[str, Any] = json.loads(line)
        seconds = float(found.pop("seconds"))
        frames = [(str(file), int(number)) for file, number in found.pop("frames", [])]
        renamed = dict(candidate.variant.renamed)
        return Named(**found, frames=frames_of(frames, renamed=renamed)), seconds


@contextmanager
def worker(peer: Peer, *, python: str = sys.executable) -> "Iterator[Worker]":
    """A worker of this tool in the environment of `python`; it ends when the block does."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    process = subprocess.Popen(
        [python, str(WORKER), peer.module],
        stdin=PIPE,
        stdout=PIPE,
        text=True,
        cwd=WORKER.parent,
        env={**environment, "OMP_NUM_THREADS": "1"},
    )
    try:
        yield Worker(process=process)
    finally:
        process.kill()
        process.communicate()


def has(peer: Peer, *, python: str) -> str:
    """The installed version of the tool, empty where it cannot be imported there."""
    distribution = {"msprobe_tool": "mindstudio-probe", "debug_mode": "torch", "torchlens_tool": "torchlens"}
    code = f"from importlib.metadata import version; print(version({distribution[peer.module]!r}))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def as_job(side: Side) -> dict[str, Any]:
    return {"script": str(side.script), "arguments": list(side.arguments)}
