"""Verifying a run: every file hashed again, every journal read and counted again (EV-16, EV-18)."""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from paritrace.errors import EvidenceError, HostError
from paritrace.evidence.digests import PrefixAndWhole, is_sha256, sha256_with_prefix
from paritrace.evidence.dumps import TENSOR_SUFFIX, TENSORS_FOLDER
from paritrace.evidence.gaps import Gap, RunGap
from paritrace.evidence.journal import Account, Loss
from paritrace.files import LOCAL, Files
from paritrace.runs.attendance import Attendance, in_words
from paritrace.runs.committed import check_committed, read_index
from paritrace.runs.envelope import (
    ATTACHMENTS_FOLDER,
    JOURNAL_NAME,
    Attachment,
    Role,
    SessionStatus,
)
from paritrace.runs.reading import Run
from paritrace.runs.receipts import mismatches
from paritrace.runs.record_reading import ReadRecord, RecordState, read_records
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
    hashing = _Hashing(files)
    items = [_attachment(row, run, hashing) for row in run.envelope.attachments]
    journals: list[JournalItem] = []
    for view in run.sessions:
        if view.row.role is Role.INFERENCE_CAPTURE:
            continue  # its evidence is an artifact of the run, which is looked at as an attachment
        items.append(_receipt(view, run, hashing))
        if view.row.role is Role.RECORD:
            continue  # it has a run record in place of a journal
        found = _journal(view, run)
        if isinstance(found, Item):
            items.append(found)
        else:
            journals.append(found)
            items.append(_counts(found))
    items.extend(_record(one) for one in read_records(run.folder, files=files))
    items.extend(_ranks(one) for one in run.attendance if one.num_expected > 1)
    items.extend(_unregistered(run, hashing))
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


class _Hashing:
    """Hashes files of a run, each length of each file once: a journal is named by its row and by its receipt."""

    def __init__(self, files: Files) -> None:
        self.files = files
        self._known: dict[tuple[Path, int], PrefixAndWhole] = {}

    def of(self, path: Path, num_bytes: int) -> PrefixAndWhole:
        """Return the digests of a file and of its first `num_bytes` bytes; errors are the file's."""
        key = (path, num_bytes)
        if key not in self._known:
            self._known[key] = sha256_with_prefix(self.files.iter_chunks(path), prefix_bytes=num_bytes)
        return self._known[key]


def verdict(items: list[Item]) -> Finding:
    """Return the finding that counts for the whole: changed, missing, not_checked, intact, in this order."""
    found = {item.status for item in items}
    for finding in (Finding.CHANGED, Finding.MISSING, Finding.NOT_CHECKED):
        if finding in found:
            return finding
    return Finding.INTACT


def _attachment(row: Attachment, run: Run, hashing: _Hashing) -> Item:
    if row.path is None:
        return Item(row.attachment_id, Finding.NOT_CHECKED, "an address: nothing was read when it was registered")
    if isinstance(row.sha256, Gap) and row.sha256.gap is RunGap.FOLDED:
        return _folded(row, row.path, run, hashing.files)
    if isinstance(row.sha256, Gap) or isinstance(row.num_bytes, Gap):
        return Item(row.attachment_id, Finding.NOT_CHECKED, "it could not be read when it was registered")
    try:
        found = hashing.of(run.folder / row.path, row.num_bytes)
    except HostError as error:
        return _unreadable(row.attachment_id, error)
    status, detail = _compared(found, row.num_bytes, row.sha256, live=row.live)
    return Item(row.attachment_id, status, detail)


def _folded(row: Attachment, path: str, run: Run, files: Files) -> Item:
    """Look at an artifact that grows by appends: each is hashed again, and their fold is the one registered."""
    artifact = run.folder / path
    try:
        index = read_index(artifact.parent, artifact.name, files=files)
        if index is None:
            return Item(row.attachment_id, Finding.NOT_CHECKED, "its index, which has the digests, is not there")
        if (index.num_bytes, index.folded_sha256) != (row.num_bytes, row.metadata.get("folded_sha256")):
            return Item(row.attachment_id, Finding.CHANGED, "its index is not the one that was registered")
        intact = check_committed(artifact.parent, artifact.name, files=files)
        more = files.size(artifact) - index.num_bytes
    except EvidenceError as error:
        return Item(row.attachment_id, Finding.CHANGED, error.message)
    except HostError as error:
        return _unreadable(row.attachment_id, error)
    if not intact:
        return Item(row.attachment_id, Finding.CHANGED, f"another digest over its {index.num_bytes} bytes")
    if more > 0:
        detail = f"live: the committed {index.num_bytes} bytes are intact, {more} more carry no digest"
        return Item(row.attachment_id, Finding.NOT_CHECKED, detail)
    return Item(row.attachment_id, Finding.INTACT, f"{index.num_bytes} bytes in {len(index.cuts)} appends")


def _compared(found: PrefixAndWhole, num_bytes: int, sha256: str, *, live: bool) -> tuple[Finding, str]:
    """Return what became of a file of which `num_bytes` bytes were registered with a digest."""
    if found.num_bytes < num_bytes or (found.num_bytes > num_bytes and not live):
        return Finding.CHANGED, f"{found.num_bytes} bytes instead of {num_bytes}"
    if found.prefix_sha256 != sha256:
        return Finding.CHANGED, f"another digest over its {num_bytes} bytes"
    if found.num_bytes == num_bytes:
        return Finding.INTACT, f"{num_bytes} bytes"
    more = found.num_bytes - num_bytes
    return Finding.NOT_CHECKED, f"live: the committed {num_bytes} bytes are intact, {more} more carry no digest"


def _unreadable(name: str, error: HostError) -> Item:
    match error.code:
        case "not_found" | "not_a_folder":
            return Item(name, Finding.MISSING, "no such file")
        case "not_a_file":
            return Item(name, Finding.CHANGED, "something that is not a plain file")
        case _:
            return Item(name, Finding.NOT_CHECKED, error.message)


def _record(read: ReadRecord) -> Item:
    """Look at what a run record says of itself; its bytes are looked at as an attachment's are."""
    name = f"record:{read.name}"
    if read.problems:
        return Item(name, Finding.CHANGED, "; ".join(read.problems))
    whole = read.state is RecordState.COMPLETE
    return Item(name, Finding.INTACT if whole else Finding.NOT_CHECKED, "; ".join((read.words, *read.remarks)))


def _ranks(of: Attendance) -> Item:
    """Look at which ranks of one restart wrote a session and a receipt; a later restart explains what is missing."""
    name = f"ranks:restart-{of.incarnation}" if of.incarnation else "ranks"
    if of.complete:
        return Item(name, Finding.INTACT, f"{of.num_expected} of {of.num_expected} ranks wrote session and receipt")
    gone = (of.num_absent or of.without_receipt) and of.last and not of.running
    return Item(name, Finding.MISSING if gone else Finding.NOT_CHECKED, "; ".join(in_words(of)))


def _receipt(view: SessionView, run: Run, hashing: _Hashing) -> Item:
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
            found = hashing.of(folder / file_name, sealed.num_bytes)
        except HostError as error:
            return _unreadable(name, error)
        if _compared(found, sealed.num_bytes, sealed.sha256, live=False)[0] is not Finding.INTACT:
            return Item(name, Finding.CHANGED, f"{file_name} is not what was sealed")
    return Item(name, Finding.INTACT, f"{len(view.receipt.files)} sealed files")


def _journal(view: SessionView, run: Run) -> JournalItem | Item:
    losses: list[Loss] = []
    try:
        reader = run.journal(view.session_id)  # a link that leads nowhere is damage, too
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


def _unregistered(run: Run, hashing: _Hashing) -> Iterator[Item]:
    """Look at copies whose rows were not written yet when the capture ended: their name is their digest."""
    known = {row.path for row in run.envelope.attachments}
    for folder, suffix in ((ATTACHMENTS_FOLDER, ""), (TENSORS_FOLDER, TENSOR_SUFFIX)):
        if not hashing.files.exists(run.folder / folder):
            continue
        for path in hashing.files.list(run.folder / folder):
            if f"{folder}/{path.name}" not in known:
                yield _unregistered_copy(path, hashing, digest=path.name.removesuffix(suffix))


def _unregistered_copy(path: Path, hashing: _Hashing, *, digest: str) -> Item:
    name = f"copy:{path.name}"
    if not is_sha256(digest):
        return Item(name, Finding.NOT_CHECKED, "nothing registers this file")
    try:
        found = hashing.of(path, 0)
    except HostError as error:
        return _unreadable(name, error)
    if found.sha256 != digest:
        return Item(name, Finding.CHANGED, "another digest than its name says")
    return Item(name, Finding.INTACT, f"{found.num_bytes} bytes, not registered")
