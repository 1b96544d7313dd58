"""The envelope of an artifact: whose run.json it is, and the rows that an append puts into it (IN-21, IN-22, EV-15)."""

import os
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from paritrace.clock import Clock, rfc3339
from paritrace.errors import EvidenceError
from paritrace.evidence.digests import sha256_hex
from paritrace.evidence.gaps import Gap, RunGap
from paritrace.evidence.ids import ProcessIdentity, checked_id
from paritrace.files import Files
from paritrace.inference.artifact import Place
from paritrace.runs import envelope as records
from paritrace.runs.attaching import JSON_LINES
from paritrace.runs.envelope import (
    ENVELOPE_NAME,
    Attachment,
    AttachmentKind,
    Availability,
    Envelope,
    Role,
    Session,
    SessionStatus,
    Storage,
)
from paritrace.runs.intent_records import Index
from paritrace.runs.launch import launch_of
from paritrace.runs.rows import session_row, with_new_session

FOLDED = "folded_sha256"  # metadata of an artifact's row: the fold of the digests of its appends
_LEVELS_ABOVE = 3  # RUN/sessions/ID/inference.jsonl is the deepest place of one


class SessionFacts(Struct, frozen=True, kw_only=True):
    """What an append says of its session; None is not said. What is said must not contradict what is recorded."""

    session_id: str
    rank: int | None = None
    local_rank: int | None = None
    world_size: int | None = None
    job_id: str | None = None


def envelope_path(place: Place, *, given: Path | None, files: Files) -> Path:
    """Return where an artifact's envelope lies, or is to lie."""
    if given is not None:
        return (given / ENVELOPE_NAME if given.is_dir() else given).resolve()
    above = (place.folder, *place.folder.parents)[:_LEVELS_ABOVE]
    found = next((folder for folder in above if files.exists(folder / ENVELOPE_NAME)), place.folder)
    return found / ENVELOPE_NAME


def new_envelope(run_id: str, *, process: ProcessIdentity, clock: Clock) -> Envelope:
    """Return the envelope of a run that has none."""
    return Envelope(
        format=records.FORMAT,
        version=records.VERSION,
        run_id=checked_id(run_id, what="run id"),
        created_at=rfc3339(clock.wall_ns()),
        start=launch_of({}, process=process).start,
        config_digest=sha256_hex(b""),
    )


def with_session(envelope: Envelope, facts: SessionFacts, *, process: ProcessIdentity, clock: Clock) -> Envelope:
    """Return an envelope that has the session of an append.

    Raises:
        EvidenceError: Refused, code `session_conflict`: it is recorded with other facts.
        RequestError: Refused, code `bad_id`.
    """
    found = session_row(envelope, facts.session_id)
    if found is None:
        return with_new_session(envelope, _new_row(envelope, facts, process, clock))
    said = {"rank": facts.rank, "local_rank": facts.local_rank, "world_size": facts.world_size, "job_id": facts.job_id}
    recorded: dict[str, object] = {
        "rank": found.rank,
        "local_rank": found.local_rank,
        "world_size": found.world_size,
        "job_id": found.job_id,
    }
    wrong = [name for name, value in said.items() if value is not None and value != recorded[name]]
    if wrong:
        raise EvidenceError(
            f"session {facts.session_id} of run {envelope.run_id} is recorded with another {' and '.join(wrong)}",
            code="session_conflict",
            fix="give the facts it was recorded with, or another session id",
        )
    return envelope


def with_artifact(envelope: Envelope, row: Attachment) -> Envelope:
    """Return an envelope with the row of its artifact, which only ever grows longer."""
    rows = {one.attachment_id: one for one in envelope.attachments} | {row.attachment_id: row}
    return replace(envelope, attachments=tuple(rows[key] for key in sorted(rows)))


def artifact_row(place: Place, index: Index, *, session_id: str, run_dir: Path) -> Attachment:
    """Return the row of an artifact: live, its bytes told by the fold of its appends' digests (EV-18, EV-19)."""
    return Attachment(
        attachment_id=f"{AttachmentKind.INFERENCE_JSONL.value}:{session_id}:{place.name}",
        title=place.name,
        kind=AttachmentKind.INFERENCE_JSONL,
        storage=Storage.REFERENCE,
        path=Path(os.path.relpath(place.path, run_dir)).as_posix(),
        url=None,
        media_type=JSON_LINES,
        availability=Availability.AVAILABLE,
        num_bytes=index.num_bytes,
        sha256=Gap(RunGap.FOLDED),
        source_session=session_id,
        live=True,
        metadata={FOLDED: index.folded_sha256},
    )


def unregistered(named: Iterable[str], envelope: Envelope) -> list[str]:
    """Return the attachments that events name and that the envelope does not have."""
    known = {row.attachment_id for row in envelope.attachments}
    return sorted(set(named) - known)


def _new_row(envelope: Envelope, facts: SessionFacts, process: ProcessIdentity, clock: Clock) -> Session:
    no_launcher: Gap[RunGap] = Gap(RunGap.NO_LAUNCHER)
    not_collected: Gap[RunGap] = Gap(RunGap.NOT_COLLECTED)
    return Session(
        session_id=checked_id(facts.session_id, what="session id"),
        rank=facts.rank or 0,
        local_rank=no_launcher if facts.local_rank is None else facts.local_rank,
        world_size=facts.world_size or 1,
        node_id=process.host,
        process=process,
        role=Role.INFERENCE_CAPTURE,
        status=SessionStatus.COMPLETED,
        incarnation=0,
        job_id=no_launcher if facts.job_id is None else facts.job_id,
        config_digest=envelope.config_digest,
        started_unix_ns=clock.wall_ns(),
        started_monotonic_ns=clock.monotonic_ns(),
        ended_unix_ns=not_collected,
        duration_ns=not_collected,
        surroundings_gap=not_collected,
    )
