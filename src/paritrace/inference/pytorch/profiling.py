"""Profiles what this thread does with torch, and leaves the trace as a file, whole or not at all (IN-16)."""

import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import torch

from paritrace.clock import SYSTEM, Clock
from paritrace.errors import HostError, RequestError
from paritrace.evidence.clocks import monotonic_domain
from paritrace.files import LOCAL, Files
from paritrace.inference.clock_marks import Mark
from paritrace.process.identity import own_identity

SUFFIXES = (".json", ".json.gz")
READINGS = 8  # of a series the best counts; the first ones find cold caches


@contextmanager
def profiled(path: Path, *, files: Files = LOCAL) -> Generator[None]:
    """Record operators, and device work where there is an accelerator, until the block ends; then write the trace.

    The block is entered and left by the thread that does the work: torch's profiler follows it. At both ends the host's
    monotonic clock is read (`mark_clock`). The trace is held in memory until the end, some 400 bytes for each operator;
    it is written also when the block ends by an exception.

    Args:
        path: `.json` or `.json.gz`; what stood there is replaced whole (EV-10).

    Raises:
        RequestError: Refused, code `bad_trace_path`, before anything is recorded.
        HostError: Refused: `profiler_busy`, torch records for somebody else; or the disk says no.
    """
    if not path.name.lower().endswith(SUFFIXES):
        raise RequestError(
            f"{path} is no name of a trace", code="bad_trace_path", fix=f"let it end with {' or '.join(SUFFIXES)}"
        )
    if torch.autograd.profiler._is_profiler_enabled:  # torch has no public question, and a second would end it
        raise HostError(
            "torch's profiler runs in this thread already",
            code="profiler_busy",
            fix="end the other profiler first; nothing was recorded",
        )
    recording = torch.profiler.profile()
    recording.start()
    try:
        mark_clock()
        yield
    finally:
        _await_devices()
        mark_clock()
        recording.stop()
        _write(recording, path, files=files)


def mark_clock(*, clock: Clock = SYSTEM) -> None:
    """Have the profile that runs in this thread bear readings of the host's monotonic clock, as ranges (IN-16).

    Its importer makes a `clock_alignment` of them: for the times between two calls, so one at the beginning and one at
    the end of what is profiled make the trace share a time line with what the host's processes note. `profiled` does
    both. A call takes some 0.2 ms; without a profile it does nothing that is seen.
    """
    domain, series = monotonic_domain(own_identity()).name, clock.monotonic_ns()
    for number in range(READINGS):
        with torch.profiler.record_function(Mark(series, number, clock.monotonic_ns(), domain).name):
            pass


def _await_devices() -> None:
    """Let the last reading come after the last work of a device, for which the profiler waits as well."""
    if torch.cuda.is_initialized():
        with suppress(RuntimeError):  # a failure of the work: the profiler meets it next, and says so
            torch.cuda.synchronize()


def _write(recording: torch.profiler.profile, path: Path, *, files: Files) -> None:
    with tempfile.TemporaryDirectory(prefix="paritrace-profile-") as folder:
        exported = Path(folder) / f"trace{'.json.gz' if path.name.lower().endswith('.gz') else '.json'}"
        recording.export_chrome_trace(str(exported))
        with files.replacing(path) as out:
            for chunk in files.iter_chunks(exported):
                out.write(chunk)
