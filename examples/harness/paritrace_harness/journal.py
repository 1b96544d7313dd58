"""The journal of an experiment: one line for each thing that happened, on disk before the next thing is done.

A line names the SHA-256 of the line before it. The last line may be torn by a kill: it was never acted upon, and is cut
off. Any other damage is an error.
"""

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from paritrace_harness.durable import sha256_of, sync_folder

Event = dict[str, Any]
START = "0" * 64


class ExperimentError(Exception):
    """What a person has to look at before the experiment goes on."""


class Journal:
    """Opens the journal and holds it: one process at a time works on an experiment."""

    def __init__(self, path: Path, *, write: Callable[[int, bytes], int] = os.write) -> None:
        self._write = write
        self._path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ExperimentError(f"another process works on {path.parent}") from None
        sync_folder(path.parent)
        self.events: list[Event] = []
        self._last = START
        self._read()

    def append(self, event: Event) -> None:
        """Add an event; when this returns it is on disk."""
        line = json.dumps({"previous": self._last, **event}, sort_keys=True, allow_nan=False).encode() + b"\n"
        rest = line
        while rest:
            rest = rest[self._write(self._descriptor, rest) :]
        os.fsync(self._descriptor)
        self._take(line)

    def of(self, stage: str) -> Iterator[Event]:
        """The events of a stage, in their order."""
        return (event for event in self.events if event.get("stage") == stage)

    def _read(self) -> None:
        data = self._path.read_bytes()
        whole = data.rfind(b"\n") + 1
        for number, line in enumerate(data[:whole].splitlines(keepends=True), 1):
            try:
                self._take(line)
            except ValueError as error:
                raise ExperimentError(f"{self._path} is damaged at line {number}: {error}") from None
        if whole < len(data):
            os.ftruncate(self._descriptor, whole)
            os.fsync(self._descriptor)

    def _take(self, line: bytes) -> None:
        event = json.loads(line)
        if not isinstance(event, dict) or event.get("previous") != self._last:
            raise ValueError("it does not follow from the line before it")
        self.events.append(event)
        self._last = sha256_of(line)
