"""A session while its process runs: what it registers, and how it ends (EV-14, EV-15, EV-18)."""

from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from paritrace.clock import Clock
from paritrace.errors import EvidenceError, InternalError
from paritrace.evidence.clocks import stepped_back
from paritrace.evidence.digests import sha256_hex
from paritrace.evidence.gaps import Gap, RunGap
from paritrace.evidence.surroundings import Surroundings
from paritrace.files import Appender, Files
from paritrace.runs import envelope as records
from paritrace.runs.attaching import (
    Reference,
    committed_row,
    copy_row,
    live_row,
    reference_row,
    sealed_row,
    tensor_row,
    whole_row,
)
from paritrace.runs.documents import read_own_envelope, write_document
from paritrace.runs.envelope import (
    ATTACHMENTS_FOLDER,
    ENVELOPE_NAME,
    JOURNAL_NAME,
    LOCK_NAME,
    RECEIPT_NAME,
    Attachment,
    AttachmentKind,
    Envelope,
    Receipt,
    ReceiptDocument,
    SealedFile,
    Session,
    SessionStatus,
)
from paritrace.runs.rows import with_attachment, with_attachments, with_changed_session


class OpenSession:
    """One process's session. Used by one thread at a time; nothing is kept that the envelope does not hold, except
    copies and surroundings that the next write of the envelope takes along (`flush`, `register_live`, `end`).
    """

    def __init__(self, run_dir: Path, row: Session, *, directory: Path, files: Files, clock: Clock) -> None:
        self.run_dir = run_dir
        self.directory = directory
        self.signals_dir = run_dir  # where the ranks of a run leave each other signs
        self._row = row
        self._files = files
        self._clock = clock
        self._live: list[Attachment] = []
        self._waiting: list[Attachment] = []
        self._ended = False

    @property
    def session_id(self) -> str:
        return self._row.session_id

    @property
    def rank(self) -> int:
        return self._row.rank

    @property
    def incarnation(self) -> int:
        return self._row.incarnation

    @property
    def started_unix_ns(self) -> int:
        return self._row.started_unix_ns

    @property
    def started_monotonic_ns(self) -> int:
        return self._row.started_monotonic_ns

    @property
    def journal_path(self) -> Path:
        return self.directory / JOURNAL_NAME

    def open_journal(self) -> Appender:
        """Create the session's journal of calls and register it live."""
        appender = self._files.append_new(self.journal_path)
        try:
            self.register_live("calls", AttachmentKind.TENSOR_TRACE, self.journal_path)
        except BaseException:
            appender.close()
            raise
        return appender

    def register_live(self, name: str, kind: AttachmentKind, path: Path) -> str:
        """Register a file that this process goes on extending; return its attachment id (EV-18)."""
        row = live_row(name, kind, path, session_id=self.session_id, run_dir=self.run_dir, files=self._files)
        self._flush_with(row)
        self._live.append(row)
        return row.attachment_id

    def hold_live(self, name: str, kind: AttachmentKind, path: Path) -> None:
        """Register a file that this process goes on extending, with the next write of the envelope."""
        row = live_row(name, kind, path, session_id=self.session_id, run_dir=self.run_dir, files=self._files)
        self._waiting.append(row)
        self._live.append(row)

    def commit_live(self, attachment_id: str) -> None:
        """Register the present length and digest of a live file, over the unchanged prefix registered before."""
        row = self._live_row(attachment_id)
        committed, prefix = committed_row(row, run_dir=self.run_dir, files=self._files)
        self._update(lambda envelope: with_attachment(envelope, committed, prefix_sha256=prefix))
        self._live[self._live.index(row)] = committed

    def attach_copy(self, kind: AttachmentKind, title: str, data: bytes, media_type: str) -> str:
        """Copy `data` into the run by its digest; return the attachment id, the same for the same content and title.

        The row is written with the next flush; the copy itself is there at once, under its digest.
        """
        row = copy_row(kind, title, data, media_type=media_type)
        folder = self.run_dir / ATTACHMENTS_FOLDER
        self._files.mkdir(folder)
        self._files.write_once(folder / sha256_hex(data), data)
        if row not in self._waiting:
            self._waiting.append(row)
        return row.attachment_id

    def register_tensor(self, sha256: str, num_bytes: int) -> None:
        """Register a tensor that lies in the run's folder of tensors; written with the next flush or the end (CA-9)."""
        self._waiting.append(tensor_row(sha256, num_bytes))

    def attach_reference(self, reference: Reference) -> str:
        """Register a file or address outside the run; return its attachment id (EV-15, EV-22)."""
        row = reference_row(reference, session_id=self.session_id, run_dir=self.run_dir, files=self._files)
        self._flush_with(row)
        return row.attachment_id

    def set_surroundings(self, surroundings: Surroundings | Gap[RunGap]) -> None:
        """Set what stood around this session; written with the next flush (CA-30)."""
        if isinstance(surroundings, Gap):
            self._row = replace(self._row, surroundings=None, surroundings_gap=surroundings)
        else:
            self._row = replace(self._row, surroundings=surroundings, surroundings_gap=None)

    @property
    def surroundings(self) -> Surroundings | None:
        """What was set last; None where it is a gap."""
        return self._row.surroundings

    def set_metadata(self, metadata: dict[str, str]) -> None:
        """Add to the session's metadata; written with the next flush (EV-21)."""
        self._row = replace(self._row, metadata={**self._row.metadata, **metadata})

    def flush(self) -> None:
        """Write what waits into the envelope: copies, surroundings, metadata."""
        self._flush_with()

    def end(self, status: SessionStatus, receipt: Receipt) -> None:
        """Seal the live files, write the receipt, then enter the end of the session into the envelope.

        The live files are closed by now. Killed half-way, the session stays `running` without an owner, which
        readers call interrupted.

        Raises:
            HostError: Failed: what was captured is readable, the session's end is not recorded.
        """
        if self._ended or status is SessionStatus.RUNNING:
            raise InternalError("a session ends once, and not as running", code="session_ended", fix="report this")
        self._ended = True
        wall_ns = self._clock.wall_ns()
        sealed = [sealed_row(row, run_dir=self.run_dir, files=self._files) for row in self._live]
        self._write_receipt(status, receipt, [row for row, _ in sealed], ended_unix_ns=wall_ns)
        waiting = (*self._waiting, self._receipt_row())
        self._row = replace(self._row, status=status, ended_unix_ns=wall_ns, duration_ns=self._duration_ns())
        if stepped_back(wall_start_ns=self._row.started_unix_ns, wall_end_ns=wall_ns):
            self._row = replace(self._row, metadata={**self._row.metadata, "wall_clock": "stepped_back"})

        def ended(envelope: Envelope) -> Envelope:
            envelope = with_attachments(with_changed_session(envelope, self._row), waiting)
            for row, prefix in sealed:
                envelope = with_attachment(envelope, row, prefix_sha256=prefix)
            return envelope

        self._update(ended)

    def _flush_with(self, *rows: Attachment) -> None:
        """Write what waits and `rows`; a row that is refused is not kept for the next time."""
        waiting = (*self._waiting, *rows)
        self._update(lambda envelope: with_attachments(with_changed_session(envelope, self._row), waiting))
        self._waiting.clear()

    def _receipt_row(self) -> Attachment:
        path = self.directory / RECEIPT_NAME
        return whole_row(
            "receipt", AttachmentKind.OTHER, path, session_id=self.session_id, run_dir=self.run_dir, files=self._files
        )

    def _duration_ns(self) -> int:
        return self._clock.monotonic_ns() - self._row.started_monotonic_ns

    def _write_receipt(
        self, status: SessionStatus, receipt: Receipt, sealed: list[Attachment], *, ended_unix_ns: int
    ) -> None:
        document = ReceiptDocument(
            format=records.RECEIPT_FORMAT,
            version=records.RECEIPT_VERSION,
            session_id=self.session_id,
            status=status,
            ended_unix_ns=ended_unix_ns,
            counts=receipt,
            files={name: _sealed_file(row) for row in sealed if (name := self._own_file(row))},
        )
        write_document(self.directory / RECEIPT_NAME, document, files=self._files)

    def _own_file(self, row: Attachment) -> str:
        """The name of a file in the session's own folder, "" for one that lies elsewhere in the run."""
        path = self.run_dir / (row.path or "")
        return path.name if path.parent.resolve() == self.directory.resolve() else ""

    def _update(self, change: Callable[[Envelope], Envelope]) -> None:
        with self._files.locked(self.run_dir / LOCK_NAME, clock=self._clock):
            envelope = read_own_envelope(self.run_dir, files=self._files)
            if envelope is None:
                raise EvidenceError(
                    f"{self.run_dir / ENVELOPE_NAME} is gone: somebody removed it while the run was captured",
                    code="envelope_gone",
                    fix="leave a run directory alone while it is captured; the session's own files are as they were",
                )
            changed = change(envelope)
            if changed != envelope:
                write_document(self.run_dir / ENVELOPE_NAME, changed, files=self._files)

    def _live_row(self, attachment_id: str) -> Attachment:
        for row in self._live:
            if row.attachment_id == attachment_id:
                return row
        raise InternalError(f"{attachment_id} is not live", code="not_live", fix="report this")


def _sealed_file(row: Attachment) -> SealedFile:
    if isinstance(row.num_bytes, Gap) or isinstance(row.sha256, Gap):
        raise InternalError(f"{row.attachment_id} was sealed without a digest", code="not_sealed", fix="report this")
    return SealedFile(num_bytes=row.num_bytes, sha256=row.sha256)
