"""What `paritrace record` does once its words are read; nothing of the command line's frame is loaded before the start.

PF-16: whatever only the end of the command needs is imported while it runs, or behind it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from paritrace.errors import OUR_FAILURE, Outcome, ParitraceError, RequestError

if TYPE_CHECKING:
    from threading import Thread

    from paritrace.runs.recorded_command import CommandRequest, RecordedCommand
    from paritrace.runs.recorded_session import RecordedSession
    from paritrace.runs.recording import RunRecord


class Asked(NamedTuple):
    """The words of one `paritrace record`, as the options of `cli/record.py` name them."""

    command: tuple[str, ...]
    output: Path
    timeout: float | None = None
    cgroup: bool = False
    sample: float | None = None
    exclusive: bool = False
    subreaper: bool = False
    title: str = ""
    as_json: bool = False


def status_of_recorded(asked: Asked) -> int:
    """Run and record the command; return its exit status, 125 where it could not be started."""
    from paritrace.runs.command_watch import Watching
    from paritrace.runs.recorded_command import CommandRequest

    watching = Watching(
        exclusive=asked.exclusive, cgroup=asked.cgroup, sample_seconds=asked.sample, subreaper=asked.subreaper
    )
    request = CommandRequest(asked.command, asked.output, timeout_seconds=asked.timeout, watching=watching)
    try:
        return _recorded(request, title=asked.title, as_json=asked.as_json)
    except ParitraceError as error:
        _say(error)
        return OUR_FAILURE


def _recorded(request: CommandRequest, *, title: str, as_json: bool) -> int:
    from paritrace.runs.recorded_command import record_command

    session = _Session(request.root, title=title)
    session.before()
    done = record_command(request, started=session.beside)
    troubles = session.after(done)

    _tell(done, troubles, request.root, as_json=as_json)
    return OUR_FAILURE if done.status is None else done.status


class _Session:
    """The session of the run directory, made beside the running command: what it imports costs no start.

    Owns the thread that makes it; the main thread waits for the command meanwhile, so that its end is seen at once.
    """

    def __init__(self, root: Path, *, title: str) -> None:
        self._root = root
        self._title = title
        self._made: RecordedSession | None = None
        self._thread: Thread | None = None

    def before(self) -> None:
        """Refuse a directory that is taken; one that other ranks of this start made already is joined first."""
        from paritrace.runs.fresh import holds_a_run

        if holds_a_run(self._root):
            self._session().begin()

    def beside(self, record: RunRecord) -> None:
        """Enter the session and its record, in a thread."""
        from threading import Thread

        self._thread = Thread(target=lambda: self._session().begin_beside(record.path), name="paritrace-session")
        self._thread.start()

    def after(self, done: RecordedCommand) -> list[ParitraceError]:
        """Seal the record and end the session; returns what kept the record or the session from being whole."""
        if self._thread is not None:
            self._thread.join()  # storage is waited for without a limit (RR-4)
        session = self._session()
        session.add(done.record.path)
        session.close()
        troubles = {error.code: error for error in (session.trouble, done.record.trouble) if error is not None}
        return list(troubles.values())  # the same fault of one place is told once

    def _session(self) -> RecordedSession:
        from paritrace.runs.recorded_session import RecordedSession

        if self._made is None:
            self._made = RecordedSession(self._root, title=self._title)
        return self._made


def _tell(done: RecordedCommand, troubles: list[ParitraceError], root: Path, *, as_json: bool) -> None:
    from paritrace.cli.output import flush, note, silence, write_json_bytes
    from paritrace.runs.record_words import end_words
    from paritrace.runs.recording import encoded

    if done.status is None:
        _say(
            RequestError(
                done.refusal,
                code="command_not_started",
                fix="check that it is installed, executable and on PATH",
                outcome=Outcome.FAILED,
            )
        )
    for line in end_words(done.end):
        note(f"paritrace: {line}")
    for error in troubles:
        _say(error, more="; the command was not disturbed")
    whole = f"recorded, but not in the run's index -> {root}" if troubles else f"recorded -> {root}"
    note(f"paritrace: {whole}" if done.record.trouble is None else f"paritrace: no whole record was written to {root}")
    if not as_json:
        return
    try:
        write_json_bytes(encoded(done.end))
        flush()
    except OSError as error:  # the status stays the command's own, whatever becomes of our document
        silence()
        note(f"paritrace: the document was not printed: {error.strerror}")


def _say(error: ParitraceError, *, more: str = "") -> None:
    from paritrace.cli.output import note

    note(f"{error.outcome.value}: {error.message} [{error.code}]")
    note(f"    fix: {error.fix}{more}")
