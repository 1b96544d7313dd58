"""What lies in a rank's staging folder now, and whether a journal still begins with what was published (ST-3, ST-4)."""

import hashlib
import os
import stat
from collections.abc import Iterator
from enum import Enum
from pathlib import Path

from msgspec import Struct

from paritrace.errors import EvidenceError, HostError
from paritrace.evidence import codec
from paritrace.evidence.digests import sha256_hex
from paritrace.evidence.gaps import Gap
from paritrace.files import TEMPORARY_PREFIX, Files
from paritrace.files.opened import OpenedFile
from paritrace.store.checkpoint import LogState
from paritrace.store.layout import is_safe_path
from paritrace.store.records import Remark, RemarkKind, SourceIdentity, StoreGap, about

NFS_PLACEHOLDER = ".nfs"
HEAD_BYTES, TAIL_BYTES = 4 << 10, 64 << 10  # of the published prefix: what truncating and regrowing cannot keep
_FIRST_LINE_BYTES = 4 << 10
_GONE = frozenset({"not_found", "not_a_folder", "stale_handle"})
_OUR_FORMATS = "paritrace-"


class _Unreadable(Enum):
    """Why a folder cannot be looked into."""

    TOO_DEEP = "too deep"  # for the system, always
    NOW = "now"  # a permission or the disk: a later sync may


_UNREADABLE = {
    "name_too_long": _Unreadable.TOO_DEEP,
    "not_permitted": _Unreadable.NOW,
    "io_error": _Unreadable.NOW,
}


class Listing(Struct, frozen=True):
    """The regular files of a rank by relative path, what is no such file, and the folders with nothing in them.

    `unreadable`: folders that could not be looked into this time; what is known of files below them still stands.
    """

    found: dict[str, SourceIdentity]
    remarks: tuple[Remark, ...]
    empty: tuple[Remark, ...]
    unreadable: tuple[Remark, ...] = ()


def listing_of(folder: Path, *, files: Files) -> Listing:
    """Look at everything below a rank's folder; temporaries of ours are passed over.

    A folder below it that cannot be read is named, and the rest is looked at all the same.

    Raises:
        HostError: Refused, code `staging_gone`, and what the disk says of the rank's folder itself.
    """
    found: dict[str, SourceIdentity] = {}
    remarks: list[Remark] = []
    empty: list[Remark] = []
    unreadable: list[Remark] = []
    require_staging(folder, files=files)
    for name, status in _walk(folder, files):
        if isinstance(status, _Unreadable):
            told = Remark(RemarkKind.UNREADABLE, _speakable(name), 0, 0, Gap(StoreGap.NOT_OBSERVABLE))
            (remarks if status is _Unreadable.TOO_DEEP else unreadable).append(told)
            continue
        if stat.S_ISDIR(status.st_mode):
            empty += [Remark(RemarkKind.EMPTY_FOLDER, name, 0, 0, 0)] if is_safe_path(name) else []
            continue
        kind = _remark_kind(name, status)
        if kind is None:
            found[name] = identity(status)
        else:
            remarks.append(Remark(kind, _speakable(name), 0, 0, status.st_size))
    by_path = (tuple(sorted(told, key=about)) for told in (remarks, empty, unreadable))
    return Listing(found, *by_path)


def require_staging(folder: Path, *, files: Files) -> None:
    """Refuse a rank's folder that is not there: a staging disk that went away must not look like an empty one.

    Raises:
        HostError: Refused, code `staging_gone`.
    """
    if not files.exists(folder):
        raise HostError(
            f"the staging folder {folder} is not there",
            code="staging_gone",
            fix="mount the staging disk again, or check --staging, --run-id and --rank; nothing was published",
        )


def identity(status: os.stat_result) -> SourceIdentity:
    """Return what a file is: device, inode, size and times."""
    return SourceIdentity(
        device=status.st_dev,
        inode=status.st_ino,
        num_bytes=status.st_size,
        modified_ns=status.st_mtime_ns,
        changed_ns=status.st_ctime_ns,
    )


def prefix_holds(opened: OpenedFile, state: LogState) -> bool:
    """Say whether an opened journal is the one that `state` describes: inode, length, head and tail of the prefix.

    A device number may change when a machine boots again: then the whole prefix decides.
    """
    now = identity(opened.stat())
    if now.inode != state.source.inode or now.num_bytes < state.offset:
        return False
    if ends_of(opened, state.offset) != (state.head_sha256, state.tail_sha256):
        return False
    return now.device == state.source.device or whole_prefix_holds(opened, state)


def whole_prefix_holds(opened: OpenedFile, state: LogState) -> bool:
    """Say whether every published byte of a journal is still what was published."""
    folded, begin = "", 0
    for cut in state.cuts:
        digest = hashlib.sha256()
        for chunk in opened.chunks(begin, cut - begin):
            digest.update(chunk)
        folded, begin = fold(folded, digest.hexdigest()), cut
    return folded == state.folded_sha256


def fold(folded: str, sha256: str) -> str:
    """Return the digest of a journal's prefix after one more segment: SHA-256 of the fold so far and the segment's."""
    return sha256_hex(f"{folded}{sha256}".encode("ascii"))


def ends_of(opened: OpenedFile, num_bytes: int) -> tuple[str, str]:
    """Return the SHA-256 of the first 4 KiB and of the last 64 KiB of the first `num_bytes` bytes."""
    head = b"".join(opened.chunks(0, min(HEAD_BYTES, num_bytes)))
    start = max(0, num_bytes - TAIL_BYTES)
    return sha256_hex(head), sha256_hex(b"".join(opened.chunks(start, num_bytes - start)))


def is_own_journal(opened: OpenedFile) -> bool:
    """Say whether a journal is one of ours: its first line names a format of paritrace."""
    line = b"".join(opened.chunks(0, _FIRST_LINE_BYTES)).partition(b"\n")[0]
    said = codec.declared(line)
    return said is not None and said.format.startswith(_OUR_FORMATS)


def is_gone(error: HostError) -> bool:
    """Say whether an error means that the file went away after it was listed."""
    return error.code in _GONE


def changed_while_read(path: str) -> EvidenceError:
    """The error for bytes that were not the same when they were read again."""
    return EvidenceError(
        f"{path} changed while it was read",
        code="changed_while_read",
        fix="sync again when it is written no longer; journals end in .jsonl or .ndjson, other files are taken whole",
    )


def _walk(folder: Path, files: Files) -> Iterator[tuple[str, os.stat_result | _Unreadable]]:
    """Yield everything that is no folder, and the folders that are empty or unreadable, by their names below `folder`.

    Raises:
        HostError: Refused, what the disk says of `folder` itself.
    """
    waiting: list[tuple[str, os.stat_result]] = []
    yield from _sorted_out("", list(files.statuses(folder)), waiting)
    while waiting:
        above, itself = waiting.pop()
        entries = _entries(folder / above, files)
        if isinstance(entries, _Unreadable):
            yield above, entries
        elif entries:
            yield from _sorted_out(f"{above}/", entries, waiting)
        else:
            yield above, itself


def _sorted_out(
    prefix: str, entries: list[tuple[str, os.stat_result]], folders: list[tuple[str, os.stat_result]]
) -> Iterator[tuple[str, os.stat_result]]:
    """Yield what is no folder; folders are added to `folders`."""
    for base, status in entries:
        if stat.S_ISDIR(status.st_mode):
            folders.append((f"{prefix}{base}", status))
        elif not base.startswith(TEMPORARY_PREFIX):
            yield f"{prefix}{base}", status


def _entries(folder: Path, files: Files) -> list[tuple[str, os.stat_result]] | _Unreadable:
    try:
        return list(files.statuses(folder))
    except HostError as error:
        if is_gone(error):
            return []
        unreadable = _UNREADABLE.get(error.code)
        if unreadable is None:
            raise
        return unreadable


def _remark_kind(name: str, status: os.stat_result) -> RemarkKind | None:
    if name.rpartition("/")[2].startswith(NFS_PLACEHOLDER):
        return RemarkKind.NFS_PLACEHOLDER
    if not stat.S_ISREG(status.st_mode):
        return RemarkKind.NOT_A_FILE
    return None if is_safe_path(name) else RemarkKind.NAME_NOT_UTF8


def _speakable(name: str) -> str:
    return name.encode("utf-8", "backslashreplace").decode("utf-8")
