"""Beginning a session of a run: claim the directory, join or refuse, enter the session (EV-13, EV-14)."""

import secrets
from pathlib import Path

from msgspec import Struct

from paritrace.clock import SYSTEM, Clock, rfc3339
from paritrace.errors import EvidenceError, RequestError
from paritrace.evidence.gaps import Gap, RunGap
from paritrace.evidence.ids import ProcessIdentity, checked_id, new_run_id, session_id_of
from paritrace.files import LOCAL, Files
from paritrace.process.identity import Life, liveness
from paritrace.runs import envelope as records
from paritrace.runs.documents import read_own_envelope, write_document
from paritrace.runs.envelope import (
    ENVELOPE_NAME,
    LOCK_NAME,
    SESSIONS_FOLDER,
    Envelope,
    Role,
    Session,
    SessionStatus,
)
from paritrace.runs.incarnations import agent_metadata, incarnation_of
from paritrace.runs.launch import Launch
from paritrace.runs.rows import with_new_session
from paritrace.runs.session import OpenSession


class SessionRequest(Struct, frozen=True):
    """What a process says of itself when it begins a session.

    `config_digest`: SHA-256 of the run's configuration, the same on every rank. `run_id` counts for the process that
    makes the run; others must name the same one or none.
    """

    role: Role
    launch: Launch
    process: ProcessIdentity
    config_digest: str
    node_id: str | None = None  # default: the host's name
    run_id: str | None = None
    title: str | None = None
    tags: tuple[str, ...] = ()
    metadata: dict[str, str] = {}


def begin_session(
    run_dir: Path, request: SessionRequest, *, files: Files = LOCAL, clock: Clock = SYSTEM
) -> OpenSession:
    """Claim or join the run directory and enter this process's session, `running`, into its envelope.

    Raises:
        RequestError: Refused: a bad id, or another run id than the run's.
        EvidenceError: Refused: the directory holds something else (`foreign_folder`), was claimed by another start
            (`run_exists`), a later restart (`stale_restart`), or holds this session already (`session_exists`).
        HostError: Refused: the disk, a permission, no locks. What stays behind is an empty claim that the next start
            of any job takes over.
    """
    _check(request)
    files.mkdir(run_dir.parent)
    files.claim(run_dir)
    with files.locked(run_dir / LOCK_NAME, clock=clock):
        envelope = read_own_envelope(run_dir, files=files)
        if envelope is None:
            _require_unused(run_dir, files)
            envelope = _new_envelope(request, clock)
        _require_same_start(envelope, request)
        row = _session_row(request, clock, incarnation=incarnation_of(envelope, request.launch, alive=_lives))
        joined = with_new_session(envelope, row)
        directory = _session_folder(run_dir, row.session_id, files)
        write_document(run_dir / ENVELOPE_NAME, joined, files=files)
    return OpenSession(run_dir, row, directory=directory, files=files, clock=clock)


def _check(request: SessionRequest) -> None:
    if request.run_id is not None:
        checked_id(request.run_id, what="run id")
    if not 0 <= request.launch.rank < request.launch.world_size:
        raise RequestError(
            f"rank {request.launch.rank} is not below world size {request.launch.world_size}",
            code="bad_launch_environment",
            fix="check the launcher's variables for rank and world size",
        )


def _require_unused(run_dir: Path, files: Files) -> None:
    """A directory without an envelope is taken over only when it holds nothing but an unfinished claim of ours."""
    strange = [path.name for path in files.list(run_dir) if path.name != SESSIONS_FOLDER]
    if not strange and files.exists(run_dir / SESSIONS_FOLDER):
        strange = [path.name for path in files.list(run_dir / SESSIONS_FOLDER) if files.list(path)]
    if strange:
        raise EvidenceError(
            f"{run_dir} is not a run directory and not empty (it holds {strange[0]})",
            code="foreign_folder",
            fix="choose a directory that does not exist yet",
        )


def _new_envelope(request: SessionRequest, clock: Clock) -> Envelope:
    unix_ns = clock.wall_ns()
    return Envelope(
        format=records.FORMAT,
        version=records.VERSION,
        run_id=request.run_id or new_run_id(unix_ns=unix_ns, random=secrets.token_bytes(10)),
        created_at=rfc3339(unix_ns),
        start=request.launch.start,
        config_digest=request.config_digest,
        title=request.title,
        tags=tuple(sorted(set(request.tags))),
        metadata=dict(request.metadata),
    )


def _require_same_start(envelope: Envelope, request: SessionRequest) -> None:
    if request.run_id is not None and request.run_id != envelope.run_id:
        raise RequestError(
            f"the directory holds run {envelope.run_id}, not {request.run_id}",
            code="other_run",
            fix="choose another run directory or leave the run id out",
        )
    if envelope.start != request.launch.start:
        raise EvidenceError(
            f"the directory holds run {envelope.run_id} of another start"
            f" ({envelope.start.launcher.value} {envelope.start.job})",
            code="run_exists",
            fix="choose another run directory; `paritrace runs rm RUN` removes one that is no longer wanted",
        )


def _lives(row: Session) -> bool:
    return liveness(row.process).life is Life.ALIVE


def _session_row(request: SessionRequest, clock: Clock, *, incarnation: int) -> Session:
    launch = request.launch
    return Session(
        session_id=session_id_of(rank=launch.rank, incarnation=incarnation),
        rank=launch.rank,
        local_rank=launch.local_rank,
        world_size=launch.world_size,
        node_id=request.node_id or request.process.host,
        process=request.process,
        role=request.role,
        status=SessionStatus.RUNNING,
        incarnation=incarnation,
        job_id=launch.job_id,
        config_digest=request.config_digest,
        started_unix_ns=clock.wall_ns(),
        started_monotonic_ns=clock.monotonic_ns(),
        ended_unix_ns=Gap(RunGap.NOT_ENDED),
        duration_ns=Gap(RunGap.NOT_ENDED),
        surroundings_gap=Gap(RunGap.NOT_COLLECTED),
        metadata=agent_metadata(launch),
    )


def _session_folder(run_dir: Path, session_id: str, files: Files) -> Path:
    """Make the folder of a session; an empty one is left by a start that was killed before it was entered."""
    directory = run_dir / SESSIONS_FOLDER / session_id
    files.mkdir(directory.parent)
    if not files.claim(directory) and files.list_all(directory):
        raise EvidenceError(
            f"{directory} holds files of a session that the envelope does not know",
            code="session_exists",
            fix="choose another run directory",
        )
    return directory
