"""Verifying a run: every file hashed again, every journal read and counted again (EV-16, EV-18)."""

import hashlib
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from paritrace.errors import EvidenceError, HostError
from paritrace.evidence.digests import is_sha256, sha256_of
from paritrace.evidence.gaps import Gap
from paritrace.evidence.journal import Account, Loss
from paritrace.files import LOCAL, Files
from paritrace.runs.envelope import (
    ATTACHMENTS_FOLDER,
    JOURNAL_NAME,
    Attachment,
    SessionStatus,
)
from paritrace.runs.reading import Run
from paritrace.runs.receipts import mismatches
from paritrace.runs.views import SessionView

FORMAT = "paritrace-verification"
VERSION = "1.0"
MAX_LOSSES_LISTED = 100  # a report is bounded; the number of losses is always given


class Finding(StrEnum):
    INTACT = "intact"
    CHANGED = "changed"
    MISSING = "missing"
    NOT_CHECKED = "not_checked"


class Item(Struct, frozen=True):
    """One thing that was looked at."""

    id: str
    status: Finding
    detail: str


class JournalItem(Struct, frozen=True):
    """One session's journal, read in full; `mismatches`: counts that its end mark or receipt give otherwise."""

    session_id: str
    status: str
    account: Account
    losses: tuple[Loss, ...]
    losses_left_out: int
    mismatches: tuple[str, ...]


class Verification(Struct, frozen=True):
    """`verdict` is the worst of the items: changed or missing, then not_checked, then intact."""

    format: str
    version: str
    run_id: str
    path: str
    digest: str
    verdict: Finding
    counts: dict[str, int]
    items: tuple[Item, ...]
    journals: tuple[JournalItem, ...]
    not_covered: tuple[str, ...]


NOT_COVERED = ("run.json itself carries no digest: compare its digest with one noted elsewhere",)


def verify(run: Run, *, files: Files = LOCAL) -> Verification:
    """Hash and read everything again that the run names; nothing is changed and nothing raises for damage."""
    items = [_attachment(row, run, files) for row in run.envelope.attachments]
    journals: list[JournalItem] = []
    for view in run.sessions:
        items.append(_receipt(view, run, files))
        found = _journal(view, run)
        if isinstance(found, Item):
            items.append(found)
        else:
            journals.append(found)
            items.append(_counts(found))
    items.extend(_unregistered(run, files))
    counts = {finding.value: sum(1 for item in items if item.status is finding) for finding in Finding}
    return Verification(
        format=FORMAT,
        version=VERSION,
        run_id=run.run_id,
        path=str(run.path),
        digest=run.digest,
        verdict=verdict(items),
        counts=counts,
        items=tuple(items),
        journals=tuple(journals),
        not_covered=NOT_COVERED,
    )


def verdict(items: list[Item]) -> Finding:
    """Return the finding that counts for the whole: changed, missing, not_checked, intact, in this order."""
    found = {item.status for item in items}
    for finding in (Finding.CHANGED, Finding.MISSING, Finding.NOT_CHECKED):
        if finding in found:
            return finding
    return Finding.INTACT


def _attachment(row: Attachment, run: Run, files: Files) -> Item:
    if row.path is None:
        return Item(row.attachment_id, Finding.NOT_CHECKED, "an address: nothing was read when it was registered")
    if isinstance(row.sha256, Gap) or isinstance(row.num_bytes, Gap):
        return Item(row.attachment_id, Finding.NOT_CHECKED, "it could not be read when it was registered")
    return _compared(row, row.num_bytes, row.sha256, path=run.folder / row.path, files=files)


def _compared(row: Attachment, num_bytes: int, sha256: str, *, path: Path, files: Files) -> Item:
    committed, total = hashlib.sha256(), 0
    try:
        for chunk in files.iter_chunks(path):
            committed.update(chunk[: max(0, num_bytes - total)])
            total += len(chunk)
    except HostError as error:
        return _unreadable(row.attachment_id, error)
    if total < num_bytes:
        return Item(row.attachment_id, Finding.CHANGED, f"{total} bytes instead of {num_bytes}")
    if committed.hexdigest() != sha256:
        return Item(row.attachment_id, Finding.CHANGED, f"another digest over its {num_bytes} bytes")
    if total == num_bytes:
        return Item(row.attachment_id, Finding.INTACT, f"{num_bytes} bytes")
    if row.live:
        return Item(
            row.attachment_id,
            Finding.NOT_CHECKED,
            f"live: the committed {num_bytes} bytes are intact, {total - num_bytes} more carry no digest",
        )
    return Item(row.attachment_id, Finding.CHANGED, f"{total} bytes instead of {num_bytes}")


def _unreadable(name: str, error: HostError) -> Item:
    match error.code:
        case "not_found" | "not_a_folder":
            return Item(name, Finding.MISSING, "no such file")
        case "not_a_file":
            return Item(name, Finding.CHANGED, "something that is not a plain file")
        case _:
            return Item(name, Finding.NOT_CHECKED, error.message)


def _receipt(view: SessionView, run: Run, files: Files) -> Item:
    """Look at a session's receipt and at the files it sealed."""
    name = f"receipt:{view.session_id}"
    if view.damage:
        return Item(name, Finding.CHANGED, view.damage)
    if view.receipt is None:
        ended = view.row.status is SessionStatus.COMPLETED
        return Item(name, Finding.MISSING if ended else Finding.NOT_CHECKED, "the session left no receipt")
    folder = run.session_folder(view.session_id)
    for file_name, sealed in sorted(view.receipt.files.items()):
        try:
            found = sha256_of(files.iter_chunks(folder / file_name))
        except HostError as error:
            return _unreadable(name, error)
        if (found.num_bytes, found.sha256) != (sealed.num_bytes, sealed.sha256):
            return Item(name, Finding.CHANGED, f"{file_name} is not what was sealed")
    return Item(name, Finding.INTACT, f"{len(view.receipt.files)} sealed files")


def _journal(view: SessionView, run: Run) -> JournalItem | Item:
    reader = run.journal(view.session_id)
    losses: list[Loss] = []
    try:
        for batch in reader.batches():
            losses.extend(item for item in batch if isinstance(item, Loss))
            del losses[MAX_LOSSES_LISTED:]
    except EvidenceError as error:
        return Item(f"journal:{view.session_id}", Finding.CHANGED, error.message)
    except HostError as error:
        return _unreadable(f"journal:{view.session_id}", error)
    account = reader.account
    return JournalItem(
        session_id=view.session_id,
        status=view.seen.words,
        account=account,
        losses=tuple(losses),
        losses_left_out=account.losses - len(losses),
        mismatches=mismatches(view.row, view.receipt, account),
    )


def _counts(journal: JournalItem) -> Item:
    name = f"{JOURNAL_NAME}:{journal.session_id}"
    if journal.mismatches:
        return Item(name, Finding.CHANGED, "; ".join(journal.mismatches))
    if journal.account.end is None:
        return Item(name, Finding.NOT_CHECKED, "no end mark: what was lost at its end is not known")
    return Item(name, Finding.INTACT, f"{journal.account.records} records, as many as were written")


def _unregistered(run: Run, files: Files) -> Iterator[Item]:
    """Look at copies whose rows were not written yet when the capture ended: their name is their digest."""
    folder = run.folder / ATTACHMENTS_FOLDER
    known = {row.path for row in run.envelope.attachments}
    if not files.exists(folder):
        return
    for path in files.list(folder):
        if f"{ATTACHMENTS_FOLDER}/{path.name}" in known:
            continue
        yield _unregistered_copy(path, files)


def _unregistered_copy(path: Path, files: Files) -> Item:
    name = f"copy:{path.name}"
    if not is_sha256(path.name):
        return Item(name, Finding.NOT_CHECKED, "nothing registers this file")
    try:
        found = sha256_of(files.iter_chunks(path))
    except HostError as error:
        return _unreadable(name, error)
    if found.sha256 != path.name:
        return Item(name, Finding.CHANGED, "another digest than its name says")
    return Item(name, Finding.INTACT, f"{found.num_bytes} bytes, not registered")
