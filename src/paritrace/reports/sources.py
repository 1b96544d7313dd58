"""Which journals a comparison read, by size and SHA-256: sealed ones as registered, live ones as they are now (P3)."""

from paritrace.evidence.digests import DigestOfBytes, sha256_of
from paritrace.evidence.gaps import Gap
from paritrace.files import LOCAL, Files
from paritrace.reports.manifest import SourceFile
from paritrace.runs.envelope import JOURNAL_NAME, SESSIONS_FOLDER, Attachment
from paritrace.runs.reading import Run


def sources_of(run: Run, /, *, side: str, files: Files = LOCAL) -> tuple[SourceFile, ...]:
    """Returns the journal of every session of a run that began one."""
    rows = {row.path: row for row in run.envelope.attachments if row.path is not None}
    found: list[SourceFile] = []
    for session in run.sessions:
        path = f"{SESSIONS_FOLDER}/{session.session_id}/{JOURNAL_NAME}"
        digest = _sealed(rows.get(path)) or _read_now(run, session.session_id, files=files)
        if digest is not None:
            found.append(SourceFile(side, session.session_id, path, digest.num_bytes, digest.sha256))
    return tuple(found)


def _sealed(row: Attachment | None) -> DigestOfBytes | None:
    if row is None or row.live or isinstance(row.num_bytes, Gap) or isinstance(row.sha256, Gap):
        return None
    return DigestOfBytes(num_bytes=row.num_bytes, sha256=row.sha256)


def _read_now(run: Run, session_id: str, *, files: Files) -> DigestOfBytes | None:
    place = run.session_folder(session_id) / JOURNAL_NAME
    return sha256_of(files.iter_chunks(place)) if files.exists(place) else None
