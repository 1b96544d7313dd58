"""The record of a launcher: its own end, and the ends of the ranks that it started as the kernel shows them (RS-13)."""

import shutil
from contextlib import suppress
from pathlib import Path

from paritrace.clock import SYSTEM, Clock
from paritrace.errors import ParitraceError, RequestError
from paritrace.evidence.gaps import Gap
from paritrace.files import LOCAL, Files
from paritrace.process.exit_watch import ExitWatch, SeenExit, Watched
from paritrace.process.identity import Life, liveness, own_identity
from paritrace.runs.assembling import rank_folders
from paritrace.runs.command_watch import Watching
from paritrace.runs.documents import read_envelope
from paritrace.runs.envelope import Session, SessionStatus
from paritrace.runs.record_lines import AdapterKind
from paritrace.runs.record_reading import read_record
from paritrace.runs.record_rows import record_folders, register_record
from paritrace.runs.recorded_command import CommandRequest, RecordedCommand, record_command
from paritrace.runs.recording import RunRecord
from paritrace.runs.staged import staged_of


class RankExits:
    """Watches the processes whose own records appear in a run directory, as far as they are of this machine.

    Ranks that write to staging have their records there; where that is, the run directory says.
    """

    def __init__(self, run_dir: Path, *, files: Files = LOCAL, clock: Clock = SYSTEM) -> None:
        self._run_dir = run_dir
        self._files = files
        self._here = own_identity()
        self._read: dict[Path, Watched | None] = {}
        self._watch = ExitWatch(self._processes, clock=clock)

    def start(self) -> None:
        self._watch.start()

    def stop(self) -> tuple[SeenExit, ...]:
        return self._watch.stop()

    def _processes(self) -> list[Watched]:
        try:
            for run_dir in (self._run_dir, *self._staged()):
                for folder in record_folders(run_dir, files=self._files):
                    if self._read.get(folder) is None:
                        self._read[folder] = self._process(folder)
        except ParitraceError:  # it does not exist yet, or cannot be listed now
            return []
        return [one for one in self._read.values() if one is not None]

    def _staged(self) -> tuple[Path, ...]:
        envelope = read_envelope(self._run_dir, files=self._files)
        staged = None if envelope is None else staged_of(envelope)
        if staged is None or not self._files.exists(staged.folder):
            return ()
        return rank_folders(staged.folder, files=self._files)

    def _process(self, folder: Path) -> Watched | None:
        start = read_record(folder, files=self._files).start
        if start is None or start.names.adapter_kind is not AdapterKind.OWN_PROCESS:
            return None
        who, here = start.recorder, self._here
        if (who.host, who.boot_id, who.pid_namespace) != (here.host, here.boot_id, here.pid_namespace):
            return None
        if isinstance(who.start_ticks, Gap):
            return None
        return Watched(
            name=start.context.values.get("session_id", folder.name), pid=who.pid, start_ticks=who.start_ticks
        )


def is_over(run_dir: Path, *, files: Files = LOCAL) -> bool:
    """Say whether a directory holds a run of which no session goes on: what is launched into it will be refused."""
    try:
        envelope = read_envelope(run_dir, files=files)
    except ParitraceError:  # not one of ours: the ranks say so
        return True
    if envelope is None or not envelope.sessions:  # without sessions: one whose ranks write to staging
        return False
    return all(row.status is not SessionStatus.RUNNING or _is_gone(row) for row in envelope.sessions)


def _is_gone(row: Session) -> bool:
    return liveness(row.process).life is Life.GONE


def record_launch(
    command: tuple[str, ...], run_dir: Path, *, files: Files = LOCAL, clock: Clock = SYSTEM
) -> RecordedCommand:
    """Run a launcher in our place and record it in the run directory that its ranks make.

    Raises:
        RequestError: Refused, code `no_launcher`: it could not be started. Where there is no such program, nothing is
            written.
    """
    if shutil.which(command[0]) is None:
        raise _no_launcher(f"cannot start {command[0]}: no such program")
    exits = RankExits(run_dir, files=files, clock=clock)
    watching = Watching(device_errors=True)
    request = CommandRequest(command, run_dir, kind=AdapterKind.LAUNCHER, watching=watching)
    done = record_command(request, started=lambda _: exits.start(), exits=exits.stop, files=files, clock=clock)
    _register(run_dir, done.record, files=files, clock=clock)
    if done.status is None:
        raise _no_launcher(done.refusal)
    return done


def _no_launcher(why: str) -> RequestError:
    return RequestError(
        why,
        code="no_launcher",
        fix="check that it is installed and on PATH, or write `python -m torch.distributed.run` for torchrun",
    )


def _register(run_dir: Path, record: RunRecord, *, files: Files, clock: Clock) -> None:
    """Enter it where ranks made a run; one that failed before leaves its record alone, which is readable as it is."""
    if record.trouble is None:
        with suppress(ParitraceError):
            register_record(run_dir, record.path, live=False, files=files, clock=clock)
