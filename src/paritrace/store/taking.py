"""Reading the bytes of one segment: where it ends, its digest, and that nothing changed meanwhile (ST-3, ST-4)."""

import hashlib
import stat
from collections.abc import Iterator
from pathlib import Path

import xxhash
from msgspec import Struct
from msgspec.structs import replace

from paritrace.evidence.digests import sha256_hex
from paritrace.files import Files
from paritrace.files.opened import OpenedFile
from paritrace.store.bundle_writing import TRIED_BYTES, compressed_size
from paritrace.store.checkpoint import FileState, LogState, WholeState
from paritrace.store.records import Segment, SegmentKind, SourceIdentity
from paritrace.store.sources import HEAD_BYTES, ends_of, fold, identity, prefix_holds

NUM_TRIES = 3  # a file that changes while it is read is read again at once; then it waits for the next sync
SETTLED_NS = 50_000_000  # a change within the same tick of the file system's clock (4 to 10 ms) leaves the times equal


class LogCut(Struct, frozen=True):
    """Which bytes of a journal are taken: `[begin, end)` of whole records.

    `complete_end`: where the last complete record that is visible ends; `visible_end`: the last byte that is looked at.
    `stopped_sha256`: not empty when the record at `end` is larger than a bundle: digest of its first bytes.
    """

    begin: int
    end: int
    complete_end: int
    visible_end: int
    stopped_sha256: str
    source: SourceIdentity


class TakenBytes(Struct, frozen=True):
    """`checksum`: XXH3-128, by which the bytes are told when they are read again at a fiftieth of a digest's cost.

    `ratio`: compressed size of its first bytes over their size.
    """

    segment: Segment
    checksum: str
    state: FileState
    ratio: float


class _Digested(Struct, frozen=True):
    num_bytes: int
    records: int
    sha256: str
    checksum: str
    ratio: float


def cut_of(opened: OpenedFile, state: LogState | None, limit: int | None, *, room: int, largest: int) -> LogCut:
    """Return which records of a journal fit.

    Args:
        limit: no byte behind it is looked at; None for all.
        room: bytes that the bundle still takes.
        largest: bytes that an empty bundle takes.
    """
    source = identity(opened.stat())
    begin = 0 if state is None else state.offset
    visible = max(begin, source.num_bytes if limit is None else min(source.num_bytes, limit))
    complete = opened.end_of_last_line(begin, visible) or begin
    end = complete
    if complete - begin > room:
        end = opened.end_of_last_line(begin, begin + room) or begin
    stopped = ""
    if end == begin and visible - begin > largest and opened.end_of_last_line(begin, begin + largest) is None:
        stopped = start_of_record(opened, begin, largest=largest)
    return LogCut(begin, end, begin if stopped else complete, visible, stopped, source)


def start_of_record(opened: OpenedFile, offset: int, *, largest: int) -> str:
    """Return the digest of the first bytes of a record that is larger than a bundle."""
    return sha256_hex(b"".join(opened.chunks(offset, min(HEAD_BYTES, largest))))


def take_log(opened: OpenedFile, state: LogState, cut: LogCut, *, path: str, known: bool) -> TakenBytes | None:
    """Return the segment of a cut, or None when the journal was changed while it was read.

    Args:
        known: something of the journal is published, so its prefix must still hold afterwards.
    """
    read = _digested(opened.chunks(cut.begin, cut.end - cut.begin), counted=True)
    head, tail = ends_of(opened, cut.end)
    if read.num_bytes != cut.end - cut.begin or (known and not prefix_holds(opened, state)):
        return None
    segment = Segment(
        path=path,
        origin=state.origin,
        version=state.version,
        kind=SegmentKind.LOG,
        offset=cut.begin,
        length=read.num_bytes,
        records=read.records,
        sha256=read.sha256,
        source=cut.source,
    )
    grown = read.num_bytes > 0
    after = replace(
        state,
        source=cut.source,
        offset=cut.end,
        head_sha256=head,
        tail_sha256=tail,
        cuts=(*state.cuts, cut.end) if grown else state.cuts,
        folded_sha256=fold(state.folded_sha256, read.sha256) if grown else state.folded_sha256,
        stopped_sha256=cut.stopped_sha256,
    )
    return TakenBytes(segment, read.checksum, after, read.ratio)


def take_file(place: Path, *, path: str, version: int, files: Files) -> TakenBytes | None:
    """Return a whole file as a segment, or None when it changed at every try.

    Raises:
        HostError: Refused, what the disk says.
    """
    for _ in range(NUM_TRIES):
        with files.opened(place) as opened:
            before = identity(opened.stat())
            read = _digested(opened.chunks(0, before.num_bytes), counted=False)
            status = opened.stat()
        after = identity(status)
        if before == after and read.num_bytes == before.num_bytes and identity(files.lstat(place)) == after:
            return _whole(path, version, read, after, executable=bool(status.st_mode & stat.S_IXUSR))
    return None


def settled_at(source: SourceIdentity, now_ns: int) -> bool:
    """Say whether a file had been left alone for a moment: a later change shows in its times then."""
    return now_ns - max(source.changed_ns, source.modified_ns) > SETTLED_NS


def _whole(path: str, version: int, read: _Digested, source: SourceIdentity, *, executable: bool) -> TakenBytes:
    segment = Segment(
        path=path,
        origin=path,
        version=version,
        kind=SegmentKind.FILE,
        offset=0,
        length=read.num_bytes,
        records=None,
        sha256=read.sha256,
        source=source,
        executable=executable,
    )
    state = WholeState(
        origin=path, version=version, source=source, sha256=read.sha256, settled=False, executable=executable
    )
    return TakenBytes(segment, read.checksum, state, read.ratio)


def _digested(chunks: Iterator[bytes], *, counted: bool) -> _Digested:
    """`counted`: they are records, each ended by a newline."""
    digest, checksum, num_bytes, records, ratio = hashlib.sha256(), xxhash.xxh3_128(), 0, 0, 1.0
    for chunk in chunks:
        if not num_bytes:
            sample = chunk[:TRIED_BYTES]
            ratio = compressed_size(sample) / len(sample)
        digest.update(chunk)
        checksum.update(chunk)
        num_bytes += len(chunk)
        records += chunk.count(b"\n") if counted else 0
    return _Digested(num_bytes, records, digest.hexdigest(), checksum.hexdigest(), ratio)
