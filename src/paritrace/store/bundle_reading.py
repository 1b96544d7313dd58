"""Reading a bundle with every check there is: digest, manifest, members, segments (ST-8, ST-11)."""

import hashlib
import tarfile
from collections.abc import Iterable, Iterator
from typing import IO, Protocol

import zstandard

from paritrace.errors import EvidenceError
from paritrace.store.bundle_writing import MANIFEST_NAME, member_name
from paritrace.store.documents import MAX_DOCUMENT_BYTES, read_canonical
from paritrace.store.layout import BundleName, is_safe_path
from paritrace.store.problems import Problem, ProblemKind
from paritrace.store.records import BUNDLE_FORMAT, Manifest, Segment, SegmentKind
from paritrace.store.streams import HashedReader, decompressed

_CHUNK_BYTES = 1 << 20


class Sink(Protocol):
    """Takes the content of a bundle while it is read; what it got is thrown away when the bundle is not whole."""

    def accept(self, manifest: Manifest, /) -> Iterator[Problem]:
        """Look at the manifest before any content; problems end the bundle."""
        ...

    def take(self, segment: Segment, chunks: Iterator[bytes], /) -> None:
        """Use up the bytes of one segment."""
        ...


class BundleReader:
    """Reads one bundle from its bytes, in bounded memory.

    `problems` holds everything that is wrong with it, segments by name; `manifest` is None when it could not be read.
    Errors of the target pass through.
    """

    def __init__(self, name: BundleName, chunks: Iterable[bytes]) -> None:
        self.name = name
        self.manifest: Manifest | None = None
        self.problems: list[Problem] = []
        self._raw = HashedReader(chunks)

    def read(self, sink: Sink) -> None:
        """Read all of it; whatever is wrong with its bytes is a problem, not an exception."""
        try:
            self._read(sink)
        except (tarfile.TarError, zstandard.ZstdError, EOFError, EvidenceError) as cause:
            self._found(ProblemKind.DAMAGED_BUNDLE, f"{type(cause).__name__}: {cause}")
        self._raw.drain()
        if self._raw.sha256 != self.name.sha256:
            self._found(ProblemKind.WRONG_DIGEST, f"its bytes have SHA-256 {self._raw.sha256}")

    def _read(self, sink: Sink) -> None:
        plain = decompressed(self._raw, suffix=self.name.suffix)
        with tarfile.open(fileobj=plain, mode="r|", bufsize=_CHUNK_BYTES, encoding="utf-8") as archive:
            members = iter(archive)
            self.manifest = self._manifest(archive, next(members, None))
            refused = [*self._of_manifest(self.manifest), *sink.accept(self.manifest)]
            self.problems += refused
            if refused:
                return
            for number, segment in enumerate(self.manifest.segments, start=1):
                self._segment(archive, next(members, None), member_name(number, segment), segment, sink)
            if next(members, None) is not None:
                self._found(ProblemKind.DAMAGED_BUNDLE, "it holds members that its manifest does not name")

    def _manifest(self, archive: tarfile.TarFile, member: tarfile.TarInfo | None) -> Manifest:
        if member is None or member.name != MANIFEST_NAME or not member.isreg() or member.size > MAX_DOCUMENT_BYTES:
            raise _bad("its first member is no manifest")
        data = b"".join(_content(archive, member))
        return read_canonical(data, Manifest, format_name=BUNDLE_FORMAT, name=f"{self.name}:{MANIFEST_NAME}")

    def _of_manifest(self, manifest: Manifest) -> Iterator[Problem]:
        said = (manifest.node_id, manifest.rank, manifest.sequence)
        if said != (self.name.key.node_id, self.name.key.rank, self.name.sequence):
            yield self._problem(ProblemKind.WRONG_NAME, f"its manifest says node, rank and sequence {said}")
        for segment in manifest.segments:
            yield from (self._problem(ProblemKind.BAD_SEGMENT, why, segment) for why in faults_of(segment))

    def _segment(
        self, archive: tarfile.TarFile, member: tarfile.TarInfo | None, name: str, segment: Segment, sink: Sink
    ) -> None:
        if member is None:
            raise _bad(f"the segment of {segment.path!r} is missing")
        if member.name != name or not member.isreg() or member.size != segment.length:
            raise _bad(f"where {name!r} of {segment.length} bytes is due, {member.name!r} of {member.size} stands")
        checked = _Checked(_content(archive, member))
        sink.take(segment, iter(checked))
        if checked.sha256 != segment.sha256:
            self._found(ProblemKind.WRONG_SEGMENT, f"its bytes have SHA-256 {checked.sha256}", segment)
        elif segment.kind is SegmentKind.LOG and (checked.records, checked.ends) != (segment.records, True):
            self._found(
                ProblemKind.WRONG_SEGMENT, f"it holds {checked.records} records, or ends in half of one", segment
            )

    def _found(self, kind: ProblemKind, detail: str, segment: Segment | None = None) -> None:
        self.problems.append(self._problem(kind, detail, segment))

    def _problem(self, kind: ProblemKind, detail: str, segment: Segment | None = None) -> Problem:
        return Problem(kind=kind, name=str(self.name), detail=detail, segment="" if segment is None else segment.path)


class _Checked:
    """Bytes of a segment, hashed and counted while they pass."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = chunks
        self._digest = hashlib.sha256()
        self.records = 0
        self.ends = True

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            self._digest.update(chunk)
            self.records += chunk.count(b"\n")
            self.ends = chunk.endswith(b"\n")
            yield chunk

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()


def faults_of(segment: Segment) -> Iterator[str]:
    """Yield what is wrong with a segment's row by itself."""
    if not is_safe_path(segment.path) or not is_safe_path(segment.origin):
        yield "its path leaves its folder or is not in plain form"
    if segment.version < 1 or segment.offset < 0 or segment.length < 0:
        yield "a version below 1, or a negative offset or length"
    if (segment.records is None) != (segment.kind is SegmentKind.FILE):
        yield "records are counted in journals, and only there"
    if segment.kind is SegmentKind.FILE and segment.offset:
        yield "a whole file begins at 0"


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> Iterator[bytes]:
    content: IO[bytes] | None = archive.extractfile(member)
    left = member.size
    while content is not None and left:
        piece = content.read(min(left, _CHUNK_BYTES))
        if not piece:
            raise _bad(f"{member.name!r} is cut off")
        left -= len(piece)
        yield piece


def _bad(why: str) -> EvidenceError:
    return EvidenceError(
        f"the bundle is damaged: {why}", code="bad_archive", fix="copy it again from where it was made"
    )
