"""Registers run records in the envelope of their run directory, live while they grow and sealed at their end (RR-8)."""

from pathlib import Path

from paritrace.clock import SYSTEM, Clock
from paritrace.evidence.digests import sha256_with_prefix
from paritrace.evidence.gaps import Gap, RunGap
from paritrace.files import LOCAL, Files
from paritrace.runs.attaching import JSON_LINES
from paritrace.runs.documents import read_own_envelope, write_document
from paritrace.runs.envelope import (
    ENVELOPE_NAME,
    LOCK_NAME,
    Attachment,
    AttachmentKind,
    Availability,
    Envelope,
    Storage,
)
from paritrace.runs.record_lines import RECORD_NAME, RECORDS_FOLDER
from paritrace.runs.rows import attachment_row, with_attachment


def register_record(run_dir: Path, record: Path, *, live: bool, files: Files = LOCAL, clock: Clock = SYSTEM) -> bool:
    """Enter a record into run.json, or lengthen and seal its row; False where there is no run.json yet.

    Raises:
        HostError: Refused or Failed, as the disk says.
        EvidenceError: Refused: `attachment_conflict`, and what is wrong with run.json.
    """
    with files.locked(run_dir / LOCK_NAME, clock=clock):
        envelope = read_own_envelope(run_dir, files=files)
        if envelope is None:
            return False
        changed = _with_record(envelope, record, live=live, files=files)
        if changed != envelope:
            write_document(run_dir / ENVELOPE_NAME, changed, files=files)
    return True


def record_folders(run_dir: Path, *, files: Files = LOCAL) -> tuple[Path, ...]:
    """Return the folder of every invocation below a run directory, registered or not, by name."""
    folder = run_dir / RECORDS_FOLDER
    if not files.exists(folder) or not files.is_folder(folder):
        return ()
    runtimes = [path for path in files.list(folder) if files.is_folder(path)]
    return tuple(path for runtime in runtimes for path in files.list(runtime) if files.is_folder(path))


def _with_record(envelope: Envelope, record: Path, *, live: bool, files: Files) -> Envelope:
    name = f"{record.parent.parent.name}/{record.parent.name}"
    attachment_id = f"{AttachmentKind.RUN_RECORD.value}:{name}"
    before = attachment_row(envelope, attachment_id)
    known = 0 if before is None or isinstance(before.num_bytes, Gap) else before.num_bytes
    found = sha256_with_prefix(files.iter_chunks(record, follow_links=False), prefix_bytes=known)
    row = Attachment(
        attachment_id=attachment_id,
        title=name,
        kind=AttachmentKind.RUN_RECORD,
        storage=Storage.REFERENCE,
        path=f"{RECORDS_FOLDER}/{name}/{RECORD_NAME}",
        url=None,
        media_type=JSON_LINES,
        availability=Availability.AVAILABLE,
        num_bytes=found.num_bytes,
        sha256=found.sha256,
        source_session=Gap(RunGap.SHARED),
        live=live,
    )
    return with_attachment(envelope, row, prefix_sha256=found.prefix_sha256)
