"""Rules for adding rows to an envelope: what is a no-op, what lengthens, what is a conflict (EV-14, EV-15, EV-18)."""

from collections.abc import Iterable

from msgspec.structs import replace

from paritrace.errors import EvidenceError
from paritrace.evidence.gaps import Gap
from paritrace.runs.envelope import Attachment, Envelope, Session, SessionStatus


def with_new_session(envelope: Envelope, row: Session) -> Envelope:
    """Return `envelope` with a session that begins.

    Raises:
        EvidenceError: Refused, code `session_exists` or `config_conflict`.
    """
    found = session_row(envelope, row.session_id)
    if found is not None:
        raise EvidenceError(
            f"session {row.session_id} of run {envelope.run_id} was recorded already, by process {found.process.pid}"
            f" of {found.process.host}",
            code="session_exists",
            fix="choose another run directory for a second capture",
        )
    if row.config_digest != envelope.config_digest:
        raise EvidenceError(
            f"run {envelope.run_id} was started with another configuration ({envelope.config_digest[:12]}…,"
            f" this one is {row.config_digest[:12]}…)",
            code="config_conflict",
            fix="give every rank and restart the same options, or choose another run directory",
        )
    sessions = tuple(sorted((*envelope.sessions, row), key=lambda one: (one.incarnation, one.rank, one.session_id)))
    return replace(envelope, sessions=sessions)


def with_changed_session(envelope: Envelope, row: Session) -> Envelope:
    """Return `envelope` with the row of a session that its own process changes.

    Raises:
        EvidenceError: Refused, code `session_conflict`: the recorded session is not the same one.
    """
    found = session_row(envelope, row.session_id)
    if found is None or _facts(found) != _facts(row):
        raise EvidenceError(
            f"session {row.session_id} is recorded with other facts in run {envelope.run_id}",
            code="session_conflict",
            fix="two processes write as the same session: give each its own rank or run directory",
        )
    return replace(envelope, sessions=tuple(row if one is found else one for one in envelope.sessions))


def with_attachment(envelope: Envelope, row: Attachment, *, prefix_sha256: str | None = None) -> Envelope:
    """Return `envelope` with an attachment; an equal row changes nothing.

    Args:
        prefix_sha256: for a file that was live: digest of as many of its bytes now as were committed before.

    Raises:
        EvidenceError: Refused, code `attachment_conflict`.
    """
    found = attachment_row(envelope, row.attachment_id)
    if found == row:
        return envelope
    if found is None:
        rows = (*envelope.attachments, row)
        return replace(envelope, attachments=tuple(sorted(rows, key=lambda one: one.attachment_id)))
    if not _lengthens(found, row, prefix_sha256):
        raise EvidenceError(
            f"attachment {row.attachment_id} is registered with other facts in run {envelope.run_id}",
            code="attachment_conflict",
            fix="give the new file another name; evidence that was registered is not replaced",
        )
    return replace(envelope, attachments=tuple(row if one is found else one for one in envelope.attachments))


def with_attachments(envelope: Envelope, rows: Iterable[Attachment]) -> Envelope:
    """Return `envelope` with attachments that are not live, as `with_attachment` adds each, in one pass.

    Raises:
        EvidenceError: Refused, code `attachment_conflict`.
    """
    known = {row.attachment_id: row for row in envelope.attachments}
    for row in rows:
        if known.setdefault(row.attachment_id, row) != row:
            return with_attachment(replace(envelope, attachments=tuple(known.values())), row)
    if len(known) == len(envelope.attachments):
        return envelope
    return replace(envelope, attachments=tuple(sorted(known.values(), key=lambda one: one.attachment_id)))


def session_row(envelope: Envelope, session_id: str) -> Session | None:
    """Return the row of a session, or None."""
    return next((row for row in envelope.sessions if row.session_id == session_id), None)


def attachment_row(envelope: Envelope, attachment_id: str) -> Attachment | None:
    """Return the row of an attachment, or None."""
    return next((row for row in envelope.attachments if row.attachment_id == attachment_id), None)


def _facts(row: Session) -> Session:
    """Return a session's row without what its process may still change."""
    return replace(
        row,
        status=SessionStatus.RUNNING,
        ended_unix_ns=0,
        duration_ns=0,
        surroundings=None,
        surroundings_gap=None,
        metadata={},
    )


def _lengthens(old: Attachment, new: Attachment, prefix_sha256: str | None) -> bool:
    if not old.live or isinstance(old.num_bytes, Gap) or isinstance(new.num_bytes, Gap):
        return False
    same = replace(new, num_bytes=old.num_bytes, sha256=old.sha256, live=True) == old
    return same and new.num_bytes >= old.num_bytes and prefix_sha256 == old.sha256
