"""Commands recorded in this process, for tests of records."""

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from paritrace.runs.command_watch import Watching
from paritrace.runs.record_reading import ReadRecord, read_records
from paritrace.runs.recorded_command import CommandRequest, RecordedCommand, record_command

DEADLINE_SECONDS = 60.0


def recorded(
    root: Path, *command: str, timeout_seconds: float | None = None, watching: Watching | None = None
) -> RecordedCommand:
    """Run a command to its end and record it below `root`."""
    request = CommandRequest(command, root, timeout_seconds=timeout_seconds, watching=watching or Watching())
    return record_command(request)


def shell(
    root: Path, script: str, *, timeout_seconds: float | None = None, watching: Watching | None = None
) -> RecordedCommand:
    """Record a shell script."""
    return recorded(root, "sh", "-c", script, timeout_seconds=timeout_seconds, watching=watching)


def python(
    root: Path, code: str, *, timeout_seconds: float | None = None, watching: Watching | None = None
) -> RecordedCommand:
    """Record a Python program without its site packages, which starts at once."""
    return recorded(root, sys.executable, "-S", "-c", code, timeout_seconds=timeout_seconds, watching=watching)


def the_record(root: Path) -> ReadRecord:
    """Return the one record below `root`."""
    (found,) = read_records(root)
    return found


def when_there(path: Path, act: Callable[[str], object]) -> threading.Thread:
    """Call `act` with the content of a file, in a thread, once the file has a line."""

    def wait() -> None:
        until = time.monotonic() + DEADLINE_SECONDS
        while time.monotonic() < until:
            text = path.read_text() if path.exists() else ""
            if text.endswith("\n"):
                act(text.strip())
                return
            time.sleep(0.01)

    thread = threading.Thread(target=wait)
    thread.start()
    return thread
