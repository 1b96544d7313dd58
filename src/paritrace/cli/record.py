"""`paritrace record`: runs any command and records how it ended, what it used and what ended it (SC-2, SU-3)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from paritrace.cli.options import A_YEAR_SECONDS, FiniteRange, json_option
from paritrace.cli.output import note
from paritrace.cli.own_status import OUR_FAILURE, OwnStatusCommand
from paritrace.errors import Outcome, ParitraceError, RequestError

if TYPE_CHECKING:
    from threading import Thread

    from paritrace.runs.recorded_command import CommandRequest, RecordedCommand
    from paritrace.runs.recorded_session import RecordedSession
    from paritrace.runs.recording import RunRecord


@click.command(cls=OwnStatusCommand, context_settings={"allow_interspersed_args": False})
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="RUN", required=True, help="The new run directory."
)
@click.option(
    "--timeout",
    type=FiniteRange(min=0, min_open=True, max=A_YEAR_SECONDS),
    metavar="S",
    help="Tell the command and all it started to end after S seconds, and kill what is left 2 s later.",
)
@click.option("--cgroup", is_flag=True, help="Give the command a memory cgroup of its own, where we may make one.")
@click.option(
    "--sample", type=FiniteRange(min=0.1, max=60), metavar="S", help="Look at the process tree every S seconds."
)
@click.option(
    "--exclusive", is_flag=True, help="Your word that nothing else runs in this container until the command has ended."
)
@click.option(
    "--subreaper", is_flag=True, help="Adopt the command's orphans, so that daemons stay in its tree (recorded)."
)
@click.option("--title", default="", help="A title for people.")
@json_option
@click.argument("command", nargs=-1, type=click.UNPROCESSED, required=True, metavar="CMD [ARG...]")
@click.pass_context
def record(  # noqa: PLR0913  one parameter per option of the synopsis; they become one record at once
    ctx: click.Context,
    output: Path,
    timeout: float | None,
    cgroup: bool,
    sample: float | None,
    exclusive: bool,
    subreaper: bool,
    title: str,
    as_json: bool,
    command: tuple[str, ...],
) -> None:
    """Run CMD and record how it ended: exit code or signal, our own timer, out-of-memory kills, resources.

    Its output and exit status are its own; 125 where it could not be started. `--json` prints the record's last line
    behind the command's own output.
    """
    from paritrace.runs.command_watch import Watching
    from paritrace.runs.recorded_command import CommandRequest

    watching = Watching(exclusive=exclusive, cgroup=cgroup, sample_seconds=sample, subreaper=subreaper)
    request = CommandRequest(command, output, timeout_seconds=timeout, watching=watching)
    try:
        status = _recorded(request, title=title, as_json=as_json)
    except ParitraceError as error:
        _say(error)
        status = OUR_FAILURE
    ctx.exit(status)


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
    from paritrace.cli.output import flush, silence, write_json_bytes
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
    note(f"{error.outcome.value}: {error.message} [{error.code}]")
    note(f"    fix: {error.fix}{more}")
