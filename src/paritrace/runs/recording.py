"""Writes one run record: made new, a start line, an end line, one sync; its own failures are one event (RR-1, RR-4).

Synchronous and without a time limit: slow storage delays the request and the return, and changes nothing else.
"""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from paritrace.clock import SYSTEM, Clock, rfc3339
from paritrace.errors import HostError
from paritrace.evidence.gaps import Gap
from paritrace.evidence.ids import checked_id
from paritrace.files import LOCAL, Appender, Files
from paritrace.process.identity import own_identity
from paritrace.runs.record_lines import (
    FORMAT,
    RECORD_NAME,
    RECORDS_FOLDER,
    VERSION,
    Context,
    Ids,
    Names,
    RecordGap,
    Start,
)

if TYPE_CHECKING:
    from paritrace.runs.record_ends import End, Line

RECORD_WRITE_FAILED = "record_write_failed"
_counter = itertools.count(1)
_encoder = msgspec.json.Encoder()


def new_id(prefix: str, *, clock: Clock = SYSTEM) -> str:
    """Return an id that no other process of this machine gives: `PREFIX-UNIX_MS-PID-COUNTER`; opaque to readers."""
    return f"{prefix}-{clock.wall_ns() // 1_000_000}-{os.getpid()}-{next(_counter)}"


def invocation_folder(root: Path, ids: Ids) -> Path:
    """Return where an invocation's record and invocation file are.

    Raises:
        RequestError: Refused, code `bad_id`: an id that is no name of a folder.
    """
    runtime = checked_id(ids.runtime_id, what="runtime id")
    return root / RECORDS_FOLDER / runtime / checked_id(ids.invocation_id, what="invocation id")


class RunRecord:
    """One invocation's record. Nothing here raises for storage: `trouble` says what failed first, once."""

    def __init__(self, folder: Path, *, files: Files = LOCAL, clock: Clock = SYSTEM) -> None:
        self.path = folder / RECORD_NAME
        self.trouble: HostError | None = None
        self._files = files
        self._clock = clock
        self._appender: Appender | None = None

    def create(self) -> None:
        """Make the file new; an existing one, or a symbolic link of that name, is refused."""
        try:
            self._files.mkdir(self.path.parent)
            self._appender = self._files.append_new(self.path)
        except HostError as error:
            self._failed(error)

    def start(self, line: Start) -> None:
        """Write the first line."""
        self._write(line)

    def end(self, line: End) -> None:
        """Write the last line, force the file to disk once, and close it."""
        self._write(line)
        appender, self._appender = self._appender, None
        if appender is None:
            return
        try:
            with appender:
                appender.sync()
        except HostError as error:
            self._failed(error)

    @property
    def written(self) -> bool:
        """Whether there is a file of ours."""
        return self._files.exists(self.path) if self.trouble is None else False

    def _write(self, line: Line) -> None:
        if self._appender is None:
            return
        try:
            self._appender.write(encoded(line))
        except HostError as error:
            self._failed(error)

    def _failed(self, error: HostError) -> None:
        self.trouble = self.trouble or error


def encoded(line: Line) -> bytes:
    """Return a line as JSON; a half surrogate, as of a name that is not UTF-8, is spelt out."""
    try:
        return _encoder.encode(line) + b"\n"
    except UnicodeEncodeError:
        from paritrace.evidence.codec import speakable

        return _encoder.encode(speakable(line)) + b"\n"


def start_line(
    ids: Ids, names: Names, context: Context, *, timeout_seconds: float | None, clock: Clock = SYSTEM
) -> Start:
    """Return a start line of now, with nothing counted yet."""
    wall_ns, monotonic_ns = clock.wall_ns(), clock.monotonic_ns()
    recorder = own_identity()
    return Start(
        format=FORMAT,
        version=VERSION,
        time=rfc3339(wall_ns),
        wall_ns=wall_ns,
        monotonic_ns=monotonic_ns,
        boot_id=recorder.boot_id,
        recorder=recorder,
        runtime_id=ids.runtime_id,
        invocation_id=ids.invocation_id,
        request_id=ids.request_id,
        names=names,
        context=context,
        timeout_seconds=Gap(RecordGap.NO_TIMEOUT) if timeout_seconds is None else timeout_seconds,
    )
