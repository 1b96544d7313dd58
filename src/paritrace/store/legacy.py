"""Old-style archives of a run: `sync.tar`, `sync.tar.gz`, `sync.tar.zst`, extracted with nothing trusted (ST-12)."""

import tarfile
from collections.abc import Iterator
from pathlib import Path

import zstandard
from msgspec import Struct

from paritrace.errors import HostError
from paritrace.files import LOCAL, Files
from paritrace.store.gathering import SPACE_KEPT_FREE_BYTES
from paritrace.store.layout import OLD_ARCHIVE, is_safe_path
from paritrace.store.streams import GZIP_MAGIC, ZSTD_MAGIC, HashedReader, damaged, decompressed

MAX_MEMBERS = 1_000_000
_CHUNK_BYTES = 1 << 20
_MAGIC_BYTES = 4


class Extracted(Struct, frozen=True):
    """What came out of an archive, and the archive's digest."""

    num_files: int
    num_bytes: int
    sha256: str


def archive_at(path: Path, *, files: Files = LOCAL) -> Path | None:
    """Return the archive that a path names: a file itself, or the one file `sync.tar*` of a folder.

    Raises:
        EvidenceError: Refused, code `bad_archive`: a folder with several.
    """
    if not files.exists(path):
        return None
    if not path.is_dir():
        return path
    found = [one for one in files.list(path) if one.name.startswith(OLD_ARCHIVE) and files.is_regular(one)]
    if len(found) > 1:
        raise damaged(f"{path} holds several archives: {', '.join(one.name for one in found)}")
    return found[0] if found else None


def extract(archive: Path, folder: Path, *, files: Files = LOCAL) -> Extracted:
    """Extract into an empty, private folder: plain files and folders with paths that stay inside; modes are dropped.

    Raises:
        EvidenceError: Refused, code `bad_archive`, also for a link, a device, an escaping path, a member twice.
        HostError: Refused: `disk_full` before the space runs out, and what the disk says.
    """
    raw = HashedReader(files.iter_chunks(archive))
    num_files = num_bytes = 0
    try:
        plain = decompressed(raw, suffix=_suffix(archive, files))
        with tarfile.open(fileobj=plain, mode="r|", bufsize=_CHUNK_BYTES) as opened:
            for member in _plain_members(opened):
                _require_space(folder, member.size, files)
                files.write_scratch(folder / member.name, _content(opened, member))
                num_files, num_bytes = num_files + 1, num_bytes + member.size
        raw.drain()
    except (tarfile.TarError, zstandard.ZstdError, EOFError) as cause:
        raise damaged(str(cause)) from cause
    except HostError as error:
        if error.code in ("already_there", "not_a_folder"):
            raise damaged("it holds a path twice, or one path as a file and as a folder") from error
        raise
    return Extracted(num_files, num_bytes, raw.sha256)


def _plain_members(opened: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    for number, member in enumerate(opened):
        vars(opened)["members"] = []  # the library keeps every header, a million of them too
        if number >= MAX_MEMBERS:
            raise damaged(f"it has more than {MAX_MEMBERS} members")
        name = member.name.removeprefix("./")
        if member.isdir() and (name in {"", "."} or is_safe_path(name)):
            continue
        if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or not is_safe_path(name):
            raise damaged(f"member {member.name[:200]!r} is no plain file inside the run")
        member.name = name
        yield member


def _content(opened: tarfile.TarFile, member: tarfile.TarInfo) -> Iterator[bytes]:
    content = opened.extractfile(member)
    while content is not None:
        piece = content.read(_CHUNK_BYTES)
        if not piece:
            return
        yield piece


def _suffix(archive: Path, files: Files) -> str:
    """Tell the compression by the first bytes; names lie."""
    start = b"".join(files.iter_chunks(archive, length=_MAGIC_BYTES))
    if start.startswith(GZIP_MAGIC):
        return ".tar.gz"
    return ".tar.zst" if start.startswith(ZSTD_MAGIC) else ".tar"


def _require_space(folder: Path, num_bytes: int, files: Files) -> None:
    free = files.free_bytes(folder)
    if num_bytes + SPACE_KEPT_FREE_BYTES > free:
        raise HostError(
            f"extracting needs {num_bytes} more bytes in {folder.parent}, {free} are free",
            code="disk_full",
            fix="free space, or name a scratch folder with more of it",
        )
