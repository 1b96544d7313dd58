"""One run out of the run directories of its ranks, as staging and restored stores have them (ST-12, ST-24)."""

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from paritrace.errors import EvidenceError, HostError
from paritrace.evidence.dumps import TENSORS_FOLDER
from paritrace.files import LOCAL, Files
from paritrace.runs.documents import parse_envelope, write_document
from paritrace.runs.envelope import (
    ATTACHMENTS_FOLDER,
    ENVELOPE_NAME,
    SESSIONS_FOLDER,
    Attachment,
    AttachmentKind,
    Envelope,
)
from paritrace.runs.record_lines import DEATH_FOLDER, INVOCATION_NAME, MAX_RECORD_BYTES, RECORD_NAME
from paritrace.runs.record_rows import record_folders
from paritrace.runs.rows import attachment_row, with_attachments

RANK_PREFIX = "rank-"
_SHARED_FOLDERS = (ATTACHMENTS_FOLDER, TENSORS_FOLDER)  # named by digest: ranks hold the same file or another one


def rank_folders(folder: Path, *, files: Files = LOCAL) -> tuple[Path, ...]:
    """Return the run directories of ranks in a folder, by number; those without an envelope are left out."""
    found = [
        path
        for path in files.list(folder)
        if path.name.removeprefix(RANK_PREFIX).isdecimal() and files.exists(path / ENVELOPE_NAME)
    ]
    return tuple(sorted(found, key=lambda path: int(path.name.removeprefix(RANK_PREFIX))))


def assemble(ranks: Sequence[Path], folder: Path, *, metadata: dict[str, str], files: Files = LOCAL) -> None:
    """Make one run directory in an empty, private folder: one envelope, and links to the ranks' files.

    Args:
        metadata: added to the run's.

    Raises:
        EvidenceError: Refused: `not_a_run` without ranks, `mixed_runs`, and those of an envelope.
    """
    if not ranks:
        raise EvidenceError(
            "there is no rank's run directory in it",
            code="not_a_run",
            fix="nothing was captured, or nothing of it was published: see `paritrace store status`",
        )
    envelopes = [parse_envelope(files.read(rank / ENVELOPE_NAME), name=str(rank)).envelope for rank in ranks]
    merged = _merged(envelopes)
    files.mkdir(folder / SESSIONS_FOLDER)
    for rank, envelope in zip(ranks, envelopes, strict=True):
        names = [row.session_id for row in envelope.sessions]
        _link(rank / SESSIONS_FOLDER, folder / SESSIONS_FOLDER, names, files)
        for shared in _SHARED_FOLDERS:
            if files.exists(rank / shared):
                files.mkdir(folder / shared)
                _link(rank / shared, folder / shared, [path.name for path in files.list(rank / shared)], files)
        _copy_records(rank, folder, files)
    merged = replace(merged, metadata={**merged.metadata, **metadata})
    write_document(folder / ENVELOPE_NAME, merged, files=files)


def add_records(run_dir: Path, folder: Path, *, files: Files = LOCAL) -> None:
    """Add to an assembled run what lies in the directory its launcher was given: run records, the folder of a death.

    Records are copied, as a record behind a link is refused; one that cannot be read is missing, as verifying says.
    """
    _copy_records(run_dir, folder, files)
    death = run_dir / DEATH_FOLDER
    if files.exists(death) and files.is_folder(death):
        files.mkdir(folder / DEATH_FOLDER)
        _link(death, folder / DEATH_FOLDER, [path.name for path in files.list(death)], files)
    own = parse_envelope(files.read(run_dir / ENVELOPE_NAME), name=str(run_dir)).envelope
    envelope = parse_envelope(files.read(folder / ENVELOPE_NAME), name=str(folder)).envelope
    rows = tuple(row for row in own.attachments if row.kind is AttachmentKind.RUN_RECORD)
    if rows:
        write_document(folder / ENVELOPE_NAME, with_attachments(envelope, rows), files=files)


def _copy_records(run_dir: Path, folder: Path, files: Files) -> None:
    for record in record_folders(run_dir, files=files):
        copy = folder / record.relative_to(run_dir)
        for name in (RECORD_NAME, INVOCATION_NAME):
            if files.exists(record / name):
                with suppress(HostError):
                    chunks = files.iter_chunks(record / name, length=MAX_RECORD_BYTES + 1, follow_links=False)
                    files.create(copy / name, chunks)


def _merged(envelopes: Sequence[Envelope]) -> Envelope:
    first = envelopes[0]
    other = next((one for one in envelopes if one.run_id != first.run_id), None)
    if other is not None:
        raise EvidenceError(
            f"it holds ranks of two runs, {first.run_id} and {other.run_id}",
            code="mixed_runs",
            fix="give every run a staging directory or a store of its own",
        )
    sessions = [row for one in envelopes for row in one.sessions]
    return replace(
        first,
        sessions=tuple(sorted(sessions, key=lambda one: (one.incarnation, one.rank, one.session_id))),
        attachments=_attachments(envelopes),
        tags=tuple(sorted({tag for one in envelopes for tag in one.tags})),
    )


def _attachments(envelopes: Iterable[Envelope]) -> tuple[Attachment, ...]:
    """Rows by id; of two that differ the first stays, since verifying finds by digest what the other one was."""
    known: dict[str, Attachment] = {}
    for envelope in envelopes:
        for row in envelope.attachments:
            if attachment_row(envelope, row.attachment_id) is row:
                known.setdefault(row.attachment_id, row)
    return tuple(known[name] for name in sorted(known))


def _link(source: Path, folder: Path, names: Iterable[str], files: Files) -> None:
    for name in names:
        if files.exists(source / name) and not files.exists(folder / name):
            with suppress(FileExistsError):
                _symlink(source / name, folder / name)


def _symlink(target: Path, link: Path) -> None:
    try:
        os.symlink(target.absolute(), link)
    except FileExistsError:
        raise
    except OSError as cause:
        raise HostError(
            f"cannot make a link in {link.parent}: {cause.strerror}",
            code="scratch_without_links",
            fix="name a scratch folder on a file system with symbolic links: --scratch, or TMPDIR",
        ) from cause
