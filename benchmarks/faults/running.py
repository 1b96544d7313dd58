"""Runs one side of a pair through the real command line in a process of its own, and compares two sides."""

import os
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import assert_never

import msgspec

from benchmarks.faults.capturing import CaptureFailedError, capture
from benchmarks.faults.case import Launch, Variant
from benchmarks.faults.checkouts import WEIGHTS, write_checkout
from paritrace.compare.checks_result import Checked
from paritrace.compare.result import Comparison

# A capture takes seconds; a hundred times that means that something hangs.
DEADLINE_SECONDS = 300
TORCHRUN = ("torch.distributed.run", "--nproc-per-node", "2")


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
    warm: bool = False  # captures of one process are made by warm interpreters
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
        self._start(variant.launch, [*command, str(script), *arguments], directory=script.parent)
        self.captured[variant, steps] = made
        return made

    def _start(self, launch: Launch, arguments: list[str], *, directory: Path) -> None:
        if not self.warm or launch not in (Launch.PROCESS, Launch.PLACED):
            return start(launch, arguments, directory=directory)
        try:
            capture(arguments, directory=directory, errors=directory.with_name("stderr"))
        except CaptureFailedError as failure:
            raise RunFailedError(str(failure)) from failure

    def capture_again(self, variant: Variant, *, steps: str) -> Captured:
        """A run of its own, also where an equal one is there: what an identical control needs."""
        known = self.captured.pop((variant, steps), None)
        if known is not None:
            self.captured[variant, steps + " "] = known
        return self.capture(variant, steps=steps)

    def compare(
        self, baseline: Captured, candidate: Captured, *, options: tuple[str, ...] = ()
    ) -> tuple[Comparison, float]:
        """The comparison of two runs and the seconds it took, start of the process included."""
        started = time.perf_counter()
        runs = (str(baseline.run), str(candidate.run))
        output = paritrace("compare", *runs, "--json", *options, directory=self.root)
        seconds = time.perf_counter() - started
        return msgspec.json.decode(output, type=Comparison), seconds

    def check(self, captured: Captured) -> tuple[Checked, float]:
        """What one run says about itself, and the seconds it took."""
        started = time.perf_counter()
        output = paritrace("check", str(captured.run), "--json", directory=self.root)
        seconds = time.perf_counter() - started
        return msgspec.json.decode(output, type=Checked), seconds


def start(launch: Launch, arguments: list[str], *, directory: Path) -> None:
    """`paritrace ARGUMENTS`, in one process or on two ranks."""
    match launch:
        case Launch.PROCESS | Launch.PLACED:
            paritrace(*arguments, directory=directory)
        case Launch.TORCHRUN:
            run_python("-m", *TORCHRUN, "--standalone", "-m", "paritrace", *arguments, directory=directory)
        case Launch.TORCHRUN_PORT:
            port = ("--master-addr", "127.0.0.1", "--master-port", str(free_port()))
            run_python("-m", *TORCHRUN, *port, "-m", "paritrace", *arguments, directory=directory)
        case Launch.BY_HAND:
            by_hand(arguments, directory=directory)
        case _:
            assert_never(launch)


def by_hand(arguments: list[str], *, directory: Path) -> None:
    """Two ranks without a launcher; rank 1 waits for rank 0, which makes the meeting place."""
    ranks: list[subprocess.Popen[str]] = []
    try:
        for more in reversed(environments_of_ranks()):
            environment = {**os.environ, "OMP_NUM_THREADS": "1", **more}
            command = [sys.executable, "-m", "paritrace", *arguments]
            ranks.append(
                subprocess.Popen(command, cwd=directory, env=environment, stdout=DEVNULL, stderr=PIPE, text=True)
            )
        for process in ranks:
            _, errors = process.communicate(timeout=DEADLINE_SECONDS)
            if process.returncode != 0:
                raise RunFailedError(f"a rank ended with {process.returncode}:\n{errors[-2000:]}")
    finally:
        for process in ranks:
            process.kill()
            process.communicate()


def environments_of_ranks() -> list[dict[str, str]]:
    """What a launcher would give each of two ranks on this machine; the port is free now."""
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2"}
    return [{**meeting, "RANK": rank, "LOCAL_RANK": rank} for rank in ("0", "1")]


def free_port() -> int:
    """A port that nobody listens at now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def paritrace(*arguments: str, directory: Path) -> str:
    """Standard output of `python -m paritrace ARGUMENTS`, run in `directory`."""
    return run_python("-m", "paritrace", *arguments, directory=directory)


def run_python(*arguments: str, directory: Path) -> str:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False
    )
    if done.returncode != 0:
        raise RunFailedError(f"{' '.join(command[2:])} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return done.stdout
