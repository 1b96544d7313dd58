"""Appending to an artifact under an intent: its index says how far it is committed (EV-9, EV-19)."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import chain
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from paritrace.errors import EvidenceError
from paritrace.evidence import codec
from paritrace.evidence.digests import sha256_hex
from paritrace.files import LOCAL, Files
from paritrace.runs.intent_records import INDEX_FORMAT, VERSION, Index, Lost
from paritrace.runs.intents import MoreContent, NewContent, change_together

NEWLINE = b"\n"


def index_name(name: str) -> str:
    """Return the name of an artifact's index, beside it."""
    return f".{name}.index.json"


class Added(Struct, frozen=True):
    """Whole lines to append, more than memory should hold; `chunks` gives them from the start whenever it is called."""

    num_bytes: int
    sha256: str
    chunks: Callable[[], Iterable[bytes]]


def added(lines: bytes) -> Added:
    """Return bytes in memory as lines to append."""
    return Added(len(lines), sha256_hex(lines), lambda: (lines,))


class Behind(StrEnum):
    """What becomes of bytes that stand behind the committed length."""

    LOST = "lost"  # they are a loss of the index, and readers pass over them
    ADOPTED = "adopted"  # the caller has read them: they are committed with what is appended


def append_records(
    folder: Path,
    name: str,
    lines: bytes | Added,
    *,
    together: Sequence[NewContent | MoreContent] = (),
    behind: Behind = Behind.LOST,
    files: Files = LOCAL,
) -> Index:
    """Append whole lines to an artifact, and change other files with it; all of it or nothing.

    To be called inside `intents.changing`. It costs what the new bytes cost; old ones are hashed by `check_committed`
    alone. No byte that stands there is changed; a missing last newline is supplied.

    Raises:
        EvidenceError: Refused: `artifact_cut_off`, `changed_meanwhile`.
        HostError: Refused, nothing changed; Failed, the next opener of the folder finishes it.
    """
    after, data = extended(folder, name, lines, behind=behind, files=files)
    stored = files.read_if_present(folder / index_name(name))
    old_sha256 = None if stored is None else sha256_hex(stored)
    index = NewContent(index_name(name), old_sha256, codec.encode_document(after))
    change_together(folder, (data, index, *together), files=files)
    return after


def extended(
    folder: Path, name: str, lines: bytes | Added, *, behind: Behind = Behind.LOST, files: Files = LOCAL
) -> tuple[Index, MoreContent]:
    """Return an artifact's index as it is after an append, and what is added to the artifact; nothing is written.

    Raises:
        EvidenceError: Refused, code `artifact_cut_off`.
    """
    path, new = folder / name, added(lines) if isinstance(lines, bytes) else lines
    size = files.size(path) if files.exists(path) else 0
    index = read_index(folder, name, files=files) or _adopted(path, name, size, files)
    if size < index.num_bytes:
        raise _cut_off(path, size, index)
    if size > index.num_bytes:
        found = Lost(index.num_bytes, size - index.num_bytes)
        losses = (*index.losses, found) if behind is Behind.LOST else index.losses
        digest = _hashed(path, found.offset, found.length, files)
        index = replace(_with(index, found.length, digest), losses=losses)
    mended = not _ends_a_line(path, size, files)
    if mended:
        index = _with(index, 1, sha256_hex(NEWLINE))
    index = _with(index, new.num_bytes, new.sha256) if new.num_bytes else index
    pieces = chain((NEWLINE,), new.chunks()) if mended else new.chunks()
    return index, MoreContent(name, size, pieces)


def _with(index: Index, num_bytes: int, sha256: str) -> Index:
    """Return an index that covers so many more bytes."""
    end = index.num_bytes + num_bytes
    folded = _fold(index.folded_sha256, sha256)
    return replace(index, num_bytes=end, cuts=(*index.cuts, end), folded_sha256=folded)


def read_index(folder: Path, name: str, *, files: Files = LOCAL) -> Index | None:
    """Return an artifact's index, None where it has none.

    Raises:
        EvidenceError: Refused, code `invalid_document`.
    """
    data = files.read_if_present(folder / index_name(name))
    return None if data is None else codec.decode_document(data, Index, name=str(folder / index_name(name)))


def committed_chunks(folder: Path, name: str, *, files: Files = LOCAL) -> Iterator[bytes]:
    """Yield the committed bytes of an artifact without its losses; all bytes where it has no index."""
    index = read_index(folder, name, files=files)
    if index is None:
        yield from files.iter_chunks(folder / name)
        return
    with files.opened(folder / name) as opened:
        at = 0
        for loss in (*index.losses, Lost(index.num_bytes, 0)):
            yield from opened.chunks(at, loss.offset - at)
            at = loss.offset + loss.length


def check_committed(folder: Path, name: str, *, files: Files = LOCAL) -> bool:
    """Say whether every committed byte of an artifact is what was appended: reads all of it."""
    index = read_index(folder, name, files=files)
    if index is None:
        return False
    folded, begin = "", 0
    with files.opened(folder / name) as opened:
        for cut in index.cuts:
            digest = hashlib.sha256()
            for chunk in opened.chunks(begin, cut - begin):
                digest.update(chunk)
            folded, begin = _fold(folded, digest.hexdigest()), cut
    return folded == index.folded_sha256 and begin == index.num_bytes


def _adopted(path: Path, name: str, size: int, files: Files) -> Index:
    """Return a first index: what a file without one holds is committed as one append."""
    cuts, folded = ((size,), _fold("", _hashed(path, 0, size, files))) if size else ((), "")
    return Index(format=INDEX_FORMAT, version=VERSION, name=name, num_bytes=size, cuts=cuts, folded_sha256=folded)


def _hashed(path: Path, start: int, length: int, files: Files) -> str:
    digest = hashlib.sha256()
    with files.opened(path) as opened:
        for chunk in opened.chunks(start, length):
            digest.update(chunk)
    return digest.hexdigest()


def _ends_a_line(path: Path, size: int, files: Files) -> bool:
    if not size:
        return True
    with files.opened(path) as opened:
        return b"".join(opened.chunks(size - 1, 1)) == NEWLINE


def _fold(folded: str, sha256: str) -> str:
    return sha256_hex(f"{folded}{sha256}".encode("ascii"))


def _cut_off(path: Path, size: int, index: Index) -> EvidenceError:
    return EvidenceError(
        f"{path} ends at byte {size}, and {index.num_bytes} were committed",
        code="artifact_cut_off",
        fix="restore the file from a copy; nothing was appended",
    )
