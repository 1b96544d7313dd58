"""Runs a recorded workload again under `paritrace run`, with other capture options (CP-15)."""

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from paritrace.errors import OUR_FAILURE, EvidenceError, HostError, Outcome
from paritrace.evidence.digests import sha256_hex
from paritrace.files import LOCAL, Files
from paritrace.process.logged import run_logged
from paritrace.runs.documents import read_envelope
from paritrace.runs.envelope import SessionStatus
from paritrace.runs.request import RunRequest, require_whole

DEADLINE_SECONDS = 24 * 3600.0  # a re-run is somebody's training: a day, unless the caller knows better
NO_SETTINGS_FILE = "PARITRACE_NO_SETTINGS_FILE"  # a settings file holds options of the user's own runs, not of ours
OWN_PREFIX = "PARITRACE_"
_OF_SHELLS = frozenset({"_", "COLUMNS", "LINES", "OLDPWD", "PWD", "SHLVL"})  # set and unset as one moves about
_OF_RANKS = frozenset({"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID"})


class Rerun(Struct, frozen=True):
    """A re-run that has ended. `status` is the workload's own, negative for a signal; 125: paritrace did not start it.

    `absent_names`: variables of the environment that were set when the request was recorded, and not now.
    """

    status: int
    run: Path
    seconds: float
    log: Path
    command: tuple[str, ...]
    absent_names: tuple[str, ...] = ()


def rerun(
    request: RunRequest,
    *,
    output: Path,
    options: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    deadline_seconds: float = DEADLINE_SECONDS,
    files: Files = LOCAL,
) -> Rerun:
    """Start the recorded workload again in its own folder and wait for its end.

    Its capture options are replaced by `options`; those that change what runs stay. What it prints goes to a file
    beside `output`, named as it with `.log`. The environment is the present one unless `environment` is given.

    Raises:
        RequestError: Refused: `arguments_unknown`, `launcher_unknown`.
        EvidenceError: Refused, code `source_changed`: a recorded source differs from the file on disk.
        HostError: Refused: `already_there`, `child_not_started`. Failed: `child_too_slow`, and the run that it left is
            incomplete.
    """
    command = command_of(request, output=output, options=options)
    require_same_sources(request, files=files)
    if files.exists(output):
        raise HostError(f"{output} exists", code="already_there", fix="name a new run directory")
    now = dict(os.environ if environment is None else environment)
    log = output.with_name(f"{output.name}.log")
    files.replace(log, f"$ {shlex.join(command)}\n".encode())
    with log.open("ab") as stream:
        done = run_logged(
            command,
            directory=Path(request.directory),
            environment=_environment(now),
            log=stream,
            deadline_seconds=deadline_seconds,
        )
    absent = _absent(request, output, files=files)
    return Rerun(done.status, output, done.seconds, log, command, absent)


def require_run(done: Rerun, who: str, *, files: Files = LOCAL) -> None:
    """Refuse to go on where a re-run left nothing that was recorded to its end, for a reason of ours or of the host.

    Raises:
        HostError: Failed: `rerun_failed`, with the last of our own words that stand in its log.
    """
    envelope = read_envelope(done.run, files=files)
    rows = () if envelope is None else envelope.sessions
    ours = done.status == OUR_FAILURE and all(row.status is SessionStatus.RUNNING for row in rows)
    if envelope is not None and not ours:
        return
    said = _own_words(files.read_if_present(done.log) or b"")
    raise HostError(
        f"{who} was started again and left no run (status {done.status}{f'; {said}' if said else ''})",
        code="rerun_failed",
        fix=f"read what it printed: {done.log}",
        outcome=Outcome.FAILED,
    )


def _own_words(printed: bytes) -> str:
    """The last refusal or failure in a log, which the command line begins with its outcome."""
    lines = printed.decode("utf-8", "replace").splitlines()
    own = (line for line in reversed(lines) if line.startswith(tuple(f"{outcome.value}: " for outcome in Outcome)))
    return next(own, "")


def command_of(request: RunRequest, *, output: Path, options: Sequence[str] = ()) -> tuple[str, ...]:
    """The command line of a re-run.

    Raises:
        RequestError: Refused: `arguments_unknown`, `launcher_unknown`.
    """
    arguments, launcher = require_whole(request)
    started_by = (f"--launcher={launcher}",) if launcher else ()
    own = (f"--output={output.resolve()}", *request.kept, *options, *started_by)
    module = ("--module",) if request.module else ()
    return (request.python, "-m", "paritrace", "run", *own, *module, request.name, *arguments)


def require_same_sources(request: RunRequest, *, files: Files = LOCAL) -> None:
    """Refuse a request whose program has changed since: another program's run says nothing of the recorded one.

    Only files below the workload's root can be looked at; those of installed packages are not.

    Raises:
        EvidenceError: Refused, code `source_changed`; the file is named.
    """
    for path, digests in sorted(request.sources.items()):
        data = files.read_if_present(Path(path))
        if data is not None and sha256_hex(data) not in digests:
            raise EvidenceError(
                f"{path} has changed since the run was captured",
                code="source_changed",
                fix="restore that file (the run keeps its text), or capture the changed program anew",
            )


def _environment(now: Mapping[str, str]) -> dict[str, str]:
    """Without settings of paritrace, and without the variables of ranks: the launcher gives each rank its own."""
    kept = {name: value for name, value in now.items() if not name.startswith(OWN_PREFIX) and name not in _OF_RANKS}
    return {**kept, NO_SETTINGS_FILE: "1"}


def _absent(request: RunRequest, output: Path, *, files: Files) -> tuple[str, ...]:
    """Compared with what the re-run recorded of itself: both lists were made inside the launcher."""
    envelope = read_envelope(output, files=files)
    rows = [row.surroundings for row in envelope.sessions if row.surroundings is not None] if envelope else []
    if not rows:
        return ()
    known = _OF_SHELLS.union(rows[0].environment_names)
    return tuple(name for name in request.environment_names if name not in known and not name.startswith(OWN_PREFIX))
