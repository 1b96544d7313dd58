"""Two sessions put at one checkpoint and captured from it, again and again, without a restart (CP-15, SE-15)."""

import shlex
import time
import uuid
from pathlib import Path

from paritrace.automation.narrow_records import REGIONS, Finer
from paritrace.automation.narrow_sides import AskedSide, Resident
from paritrace.automation.rerun import Rerun
from paritrace.errors import HostError, Outcome, RequestError
from paritrace.files import LOCAL, Files
from paritrace.session.api import Session
from paritrace.session.checkpoint_records import MANIFEST
from paritrace.session.checkpoints import Checkpoint, path_of, read_checkpoint
from paritrace.session.client import NotAppliedError, Options
from paritrace.session.commands import Body, Kind
from paritrace.session.directory import CAPTURES
from paritrace.session.opening import read_session
from paritrace.session.states import RankState

SIDES = ("baseline", "candidate")


def resident_sides(
    baseline: Path, candidate: Path, *, checkpoint: str, files: Files = LOCAL
) -> tuple[AskedSide, AskedSide]:
    """Return both sessions as sides; a candidate that has no checkpoint of this name is given the baseline's.

    Raises:
        RequestError: Refused: `not_a_session`, `bad_name`, or `another_checkpoint`: the candidate's is another one.
        EvidenceError: Refused: the baseline has no such checkpoint, or it is damaged.
        HostError: as the disk says; a copy that broke off leaves no checkpoint.
    """
    for directory in (baseline, candidate):
        read_session(directory, files=files)
    ours = read_checkpoint(path_of(baseline, checkpoint), files=files)
    path = path_of(candidate, checkpoint)
    if not files.exists(path):
        _copied(ours, path, files=files)
    theirs = read_checkpoint(path, files=files)
    if theirs.digest != ours.digest:
        raise RequestError(
            f"{candidate} has a checkpoint {checkpoint} of its own, which is not that of {baseline}",
            code="another_checkpoint",
            fix="save the baseline under a name that the candidate does not have, and narrow from that",
        )
    one, other = (
        AskedSide(name, path, None, Resident(path, checkpoint, ours.digest, ours.manifest.origin.step), ours.digest)
        for name, path in zip(SIDES, (baseline, candidate), strict=True)
    )
    return one, other


def require_idle(resident: Resident) -> None:
    """Refuse a session that takes steps or has failed.

    Raises:
        RequestError: Refused: `session_busy`.
        HostError: Refused: `coordinator_gone`.
    """
    with Session(resident.directory) as session:
        status = session.status()
    if status.state is not RankState.IDLE or status.target is not None:
        raise RequestError(
            f"{resident.directory} is {status.state.value}: it is put at a checkpoint only while idle",
            code="session_busy",
            fix=f"paritrace session stop {shlex.quote(str(resident.directory))}; out of an error, rebuild",
        )


def captured_from_checkpoint(
    resident: Resident,
    options: Finer,
    between: tuple[int, int | None] | None,
    *,
    output: Path,
    deadline_seconds: float,
) -> Rerun:
    """Load the checkpoint, step up to what is wanted, and capture it; `output` has the same files as the session.

    The session keeps its capture, which its journal names; the round's are second names of these files, and copies
    only where a file can have no second name.

    Raises:
        HostError: Failed: `rerun_failed`, with every reason of every rank.
    """
    started = time.monotonic()
    first, end = (options.window, options.window + 1) if options.window is not None else (between or (0, None))
    assert end is not None  # a narrowing of sessions always has an end
    name = f"narrow-{uuid.uuid4().hex[:16]}"
    body: Body = {"steps": end - first, "level": list(options.levels), "name": name, "select": list(options.select)}
    body |= {"statistics": True, "regions": REGIONS} if options.fine else {}
    with Session(resident.directory) as session:
        patience = Options(timeout_seconds=deadline_seconds)
        try:
            session.load(resident.checkpoint, options=patience)
            if first > resident.step:
                session.run(first - resident.step, autosave=False, wait=True, options=patience)
            session.command(Kind.CAPTURE, body, patience)
            session.run(end - first, autosave=False, wait=True, options=patience)
        except NotAppliedError as error:
            raise HostError(
                f"{resident.directory} could not be captured from {resident.checkpoint}: {error.message}",
                code="rerun_failed",
                fix=error.fix,
                outcome=Outcome.FAILED,
                details=error.details,
            ) from error
    made = resident.directory / CAPTURES / name
    _shared(made, output)
    command = ("paritrace", "session", "capture", str(resident.directory), str(end - first), *options.arguments)
    return Rerun(0, output, time.monotonic() - started, made, command)


def _copied(checkpoint: Checkpoint, path: Path, *, files: Files) -> None:
    """The manifest last, as when it was saved."""
    hidden = path.with_name(f".{path.name}-{uuid.uuid4().hex[:8]}")
    for name in (*checkpoint.manifest.files, MANIFEST):
        files.create(hidden / name, files.iter_chunks(checkpoint.folder / name))
    files.publish_folder(hidden, path)


def _shared(source: Path, target: Path) -> None:
    for path in sorted(source.rglob("*")):
        if LOCAL.is_regular(path):
            LOCAL.share(path, target / path.relative_to(source))
