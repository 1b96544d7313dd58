"""Runs for tests: a request, a small capture, a second process."""

from pathlib import Path

from msgspec.structs import replace

from paritrace.clock import Clock
from paritrace.evidence import codec
from paritrace.evidence.calls import EndMark, JournalHeader, Name, StepMark
from paritrace.evidence.ids import ProcessIdentity
from paritrace.files import LOCAL, Appender, Files
from paritrace.process.identity import own_identity
from paritrace.runs.envelope import AttachmentKind, Receipt, Role, SessionStatus
from paritrace.runs.launch import launch_of
from paritrace.runs.opening import SessionRequest, begin_session
from paritrace.runs.session import OpenSession
from paritrace.testing.clocks import ManualClock
from paritrace.testing.strategies import A_CALL, HEADER

CONFIG = "c" * 64
SOURCE = b"print('hello')\n"
STEP = StepMark(step=0, started_ns=0, ended_ns=9, calls=3, backwards=0, optimizer_steps=1, grad_norm="0x1p+0")


def torchrun(rank: int, *, world_size: int = 2, restart: int = 0, job: str = "job-1") -> dict[str, str]:
    """Return the environment of a rank under torchrun."""
    return {
        "TORCHELASTIC_RUN_ID": job,
        "TORCHELASTIC_RESTART_COUNT": str(restart),
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(world_size),
    }


def request(environ: dict[str, str] | None = None, *, process: ProcessIdentity | None = None) -> SessionRequest:
    """Return a request of this process, or of another one, in an environment."""
    process = process if process is not None else own_identity()
    return SessionRequest(
        role=Role.TRAINING,
        launch=launch_of(environ or {}, process=process),
        process=process,
        config_digest=CONFIG,
        run_id="run-1",
    )


def another_process() -> ProcessIdentity:
    """Return the identity of a process of this host that is provably gone: our pid, begun at another time."""
    return replace(own_identity(), start_ticks=1)


def header(session: OpenSession) -> JournalHeader:
    return replace(HEADER, session_id=session.session_id, rank=session.rank, incarnation=session.incarnation)


def write_records(session: OpenSession, journal: Appender, *, calls: int = 3) -> int:
    """Write a header, a definition, calls and a step; return the number of lines."""
    lines = [codec.encode_mark(header(session)), codec.encode_mark(Name(0, "args[0]"))]
    lines += [codec.encode_row(replace(A_CALL, id=number)) for number in range(calls)]
    lines.append(codec.encode_mark(STEP))
    for line in lines:
        journal.write(line)
    return len(lines)


def finish(session: OpenSession, journal: Appender, *, lines: int, calls: int = 3) -> None:
    journal.write(codec.encode_mark(EndMark(lines=lines, calls=calls, details=0, states=0, gaps={})))
    journal.close()
    session.end(SessionStatus.COMPLETED, Receipt(lines=lines, calls=calls, details=0, states=0))


def capture(
    run_dir: Path, *, environ: dict[str, str] | None = None, files: Files = LOCAL, clock: Clock | None = None
) -> None:
    """Make a whole run, or one rank's part of it, as a capture does."""
    session = begin_session(run_dir, request(environ), files=files, clock=clock or ManualClock())
    with session.open_journal() as journal:
        lines = write_records(session, journal)
        session.attach_copy(AttachmentKind.SOURCE, "<main>", SOURCE, "text/x-python")
        session.flush()
        finish(session, journal, lines=lines)
