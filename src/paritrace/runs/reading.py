"""The one door to a run, whether a directory or an archive: envelope, sessions, records, attachments."""

from collections.abc import Collection, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from paritrace.errors import EvidenceError, HostError, InternalError
from paritrace.evidence.codec import Record
from paritrace.evidence.digests import is_sha256, sha256_hex
from paritrace.evidence.gaps import Gap
from paritrace.evidence.journal import JournalReader, Loss
from paritrace.evidence.line_blocks import BLOCK_BYTES, pays_off
from paritrace.files import LOCAL, Files
from paritrace.runs.attendance import CAPTURED_RANKS, Attendance, attendance
from paritrace.runs.documents import parse_envelope
from paritrace.runs.envelope import (
    ATTACHMENTS_FOLDER,
    ENVELOPE_NAME,
    JOURNAL_NAME,
    SESSIONS_FOLDER,
    Attachment,
    Envelope,
    Role,
)
from paritrace.runs.rows import attachment_row
from paritrace.runs.views import SessionView, session_view

if TYPE_CHECKING:
    from paritrace.runs.scratch import Scratch

JOURNAL_CHUNK_BYTES = 1 << 16  # records of one chunk stay in the cache: measured 1.5 times as fast as 1 MiB


class Run:
    """A run that is open for reading. Closing it removes what was unpacked from an archive."""

    def __init__(self, path: Path, folder: Path, *, files: Files, scratch: "Scratch | None" = None) -> None:
        self.path = path
        self.folder = folder
        self._files = files
        self._scratch = scratch
        data = files.read(folder / ENVELOPE_NAME)
        parsed = parse_envelope(data, name=str(path / ENVELOPE_NAME))
        self.envelope: Envelope = parsed.envelope
        self.unknown_fields = parsed.unknown_fields
        self.digest = sha256_hex(data)
        self.sessions: tuple[SessionView, ...] = tuple(
            session_view(row, folder=self.session_folder(row.session_id), files=files)
            for row in parsed.envelope.sessions
        )

    @property
    def run_id(self) -> str:
        return self.envelope.run_id

    @property
    def attendance(self) -> tuple[Attendance, ...]:
        """Which ranks left evidence and which did not, restart by restart (CA-16)."""
        captured_here = [view for view in self.sessions if view.row.role is not Role.INFERENCE_CAPTURE]
        return attendance(captured_here, captured=self.envelope.metadata.get(CAPTURED_RANKS, ""))

    def session(self, session_id: str) -> SessionView:
        """Return one session's view; an unknown id is a fault of the caller."""
        for view in self.sessions:
            if view.session_id == session_id:
                return view
        raise InternalError(f"run {self.run_id} has no session {session_id}", code="no_session", fix="report this")

    def restrict(self, session_ids: Collection[str]) -> None:
        """Leave only these sessions to be read: where a run is compared from one of its restarts on (CP-28)."""
        self.sessions = tuple(view for view in self.sessions if view.session_id in session_ids)

    def session_folder(self, session_id: str) -> Path:
        """Return the folder of a session's files."""
        return self.folder / SESSIONS_FOLDER / session_id

    def journal(self, session_id: str, *, in_blocks: bool = False) -> JournalReader:
        """Return a reader of a session's journal; its `account` is final once it was iterated (EV-8).

        `in_blocks`: for whom `blocks` are read, not records.
        """
        path = self.session_folder(session_id) / JOURNAL_NAME
        if not self._files.exists(path):
            # such a session writes a run record, or an inference artifact of the run, alone
            recorded = self.session(session_id).row.role in (Role.RECORD, Role.INFERENCE_CAPTURE)
            return JournalReader((), name=str(path), missing="" if recorded else "no journal was begun")
        size = self._files.size(path)
        chunk_bytes = BLOCK_BYTES if in_blocks and pays_off(size) else JOURNAL_CHUNK_BYTES
        chunks = self._files.iter_chunks(path, chunk_bytes=chunk_bytes)
        return JournalReader(chunks, name=str(path), missing=self._shortfall(session_id, size), num_bytes=size)

    def journal_bytes(self, session_id: str) -> Iterator[bytes]:
        """Yield the bytes of a session's journal as they lie there, for a look that is quicker than reading."""
        path = self.session_folder(session_id) / JOURNAL_NAME
        if self._files.exists(path):
            yield from self._files.iter_chunks(path)

    def records(self, session_id: str, *, strict: bool = False) -> Iterator[Record | Loss]:
        """Yield the records and losses of a session's journal in order, in bounded memory.

        Raises:
            EvidenceError: Refused: a foreign journal; with `strict` also code `journal_losses` at the first loss.
        """
        for item in self.journal(session_id):
            if strict and isinstance(item, Loss):
                raise EvidenceError(
                    f"journal of {session_id}: line {item.line}, {item.reason.value}: {item.detail}",
                    code="journal_losses",
                    fix="leave --strict out to go on with the loss shown in the coverage",
                )
            yield item

    def attachment(self, attachment_id: str) -> bytes:
        """Return the bytes of an attachment that was copied or lies in reach.

        Raises:
            EvidenceError: Refused: `no_attachment`, or `attachment_changed` when the digest is another one.
        """
        row = attachment_row(self.envelope, attachment_id)
        if row is None or row.path is None:
            raise EvidenceError(
                f"run {self.run_id} has no file for attachment {attachment_id}",
                code="no_attachment",
                fix="list them with `paritrace runs show RUN`",
            )
        return _checked(self._files.read(self.folder / row.path), row)

    def source(self, digest: str) -> str | None:
        """Return the source text that a call site names by digest, or None when the run does not keep it (CA-26).

        Found by its content, so that a capture killed before it registered the copy reads as well.
        """
        data = self._copy(digest)
        return None if data is None else data.decode("utf-8", errors="replace")

    def close(self) -> None:
        """Remove what was unpacked; closing twice is allowed."""
        if self._scratch is not None:
            self._scratch.remove()

    def __enter__(self) -> "Run":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _shortfall(self, session_id: str, size: int) -> str:
        receipt = self.session(session_id).receipt
        sealed = None if receipt is None else receipt.files.get(JOURNAL_NAME)
        if sealed is None or size >= sealed.num_bytes:
            return ""
        return f"the file ends {sealed.num_bytes - size} bytes before what was sealed"

    def _copy(self, digest: str) -> bytes | None:
        if not is_sha256(digest):
            return None
        data = self._files.read_if_present(self.folder / ATTACHMENTS_FOLDER / digest)
        return data if data is not None and sha256_hex(data) == digest else None


def open_run(path: Path, *, files: Files = LOCAL, scratch: Path | None = None) -> Run:
    """Open a run for reading: a run directory, its run.json, an archive made by `runs pack`; a store, restored or not.

    Args:
        scratch: where what is not a run directory itself becomes one, in a private folder that closing removes;
            default: the system's temporary folder (ST-25).

    Raises:
        EvidenceError: Refused: `not_a_run`, `foreign_run`, `invalid_document`, `newer_version`, `bad_archive`; of a
            store `damaged_store`, `not_a_store`, `mixed_runs`.
        HostError: Refused: `not_found` and what the disk says.
    """
    from paritrace.runs.stored import is_address, stored_folder

    if not is_address(path) and not files.exists(path):
        raise HostError(f"{path} does not exist", code="not_found", fix="check the path of the run")
    folder = path.parent if path.name == ENVELOPE_NAME and not path.is_dir() else path
    private = stored_folder(folder, scratch=scratch, files=files)
    if private is not None:
        return _opened(path, private, files)
    if folder.is_dir():
        if not files.exists(folder / ENVELOPE_NAME):
            raise EvidenceError(
                f"{folder} is not a run: it has no {ENVELOPE_NAME}",
                code="not_a_run",
                fix="name a directory made by `paritrace run -o`, or an archive made by `paritrace runs pack`",
            )
        return Run(folder, folder, files=files)
    from paritrace.runs.pack import unpack  # zstandard and tarfile are loaded only for archives

    return _opened(path, unpack(path, scratch=scratch, files=files), files)


def _opened(path: Path, private: "Scratch", files: Files) -> Run:
    try:
        return Run(path, private.run_folder, files=files, scratch=private)
    except BaseException:
        private.remove()
        raise


def _checked(data: bytes, row: Attachment) -> bytes:
    committed = data if isinstance(row.num_bytes, Gap) or not row.live else data[: row.num_bytes]
    if not isinstance(row.sha256, Gap) and sha256_hex(committed) != row.sha256:
        raise EvidenceError(
            f"attachment {row.attachment_id} has other bytes than were registered",
            code="attachment_changed",
            fix="restore the file from a copy; `paritrace runs verify RUN` lists what changed",
        )
    return data
