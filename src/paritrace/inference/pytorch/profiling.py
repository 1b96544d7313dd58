"""Profiles what this thread does with torch, and leaves the trace as a file, whole or not at all (IN-16)."""

import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import torch

from paritrace.errors import HostError, RequestError
from paritrace.files import LOCAL, Files

SUFFIXES = (".json", ".json.gz")


@contextmanager
def profiled(path: Path, *, files: Files = LOCAL) -> Generator[None]:
    """Record operators, and device work where there is an accelerator, until the block ends; then write the trace.

    The block is entered and left by the thread that does the work: torch's profiler follows it. The trace is held in
    memory until the end, some 400 bytes for each operator; it is written also when the block ends by an exception.

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
        yield
    finally:
        recording.stop()
        _write(recording, path, files=files)


def _write(recording: torch.profiler.profile, path: Path, *, files: Files) -> None:
    with tempfile.TemporaryDirectory(prefix="paritrace-profile-") as folder:
        exported = Path(folder) / f"trace{'.json.gz' if path.name.lower().endswith('.gz') else '.json'}"
        recording.export_chrome_trace(str(exported))
        with files.replacing(path) as out:
            for chunk in files.iter_chunks(exported):
                out.write(chunk)
