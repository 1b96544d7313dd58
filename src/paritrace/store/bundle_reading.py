"""Reading a bundle with every check there is: digest, manifest, members, segments (ST-8, ST-11)."""

import hashlib
import tarfile
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from functools import partial
from typing import Protocol

import zstandard

from paritrace.errors import EvidenceError
from paritrace.store.aside import AsideDigest, Buffer
from paritrace.store.bundle_writing import BLOCK, END, MANIFEST_NAME, header, header_of, member_name, padding
from paritrace.store.documents import MAX_DOCUMENT_BYTES, read_canonical
from paritrace.store.layout import COMPRESSED, BundleName, is_safe_path
from paritrace.store.problems import Problem, ProblemKind
from paritrace.store.records import BUNDLE_FORMAT, Manifest, Segment, SegmentKind
from paritrace.store.streams import HashedReader, decompressed

_CHUNK_BYTES = 1 << 18


class Digest(Protocol):
    """Takes the bytes of a bundle, in order."""

    def update(self, data: bytes, /) -> None: ...


class Sink(Protocol):
    """Takes the content of a bundle while it is read; what it got is thrown away when the bundle is not whole."""

    def accept(self, manifest: Manifest, /) -> Iterator[Problem]:
        """Look at the manifest before any content; problems end the bundle."""
        ...

    def take(self, segment: Segment, chunks: Iterator[Buffer], /) -> None:
        """Use up the bytes of one segment."""
        ...


class BundleReader:
    """Reads one bundle from its bytes, in bounded memory.

    A bundle is spelled in one way: every header is compared with the one that its manifest asks for. `problems` holds
    everything that is wrong with it, segments by name; `manifest` is None when it could not be read. Errors of the
    target pass through. `aside`: its digest is computed in a thread of its own, which costs a tenth more CPU time and
    is worth it where nothing is written meanwhile (ADR 0059).
    """

    def __init__(self, name: BundleName, chunks: Iterable[bytes], *, aside: bool = False) -> None:
        self.name = name
        self.manifest: Manifest | None = None
        self.problems: list[Problem] = []
        self._chunks = chunks
        self._aside = aside
        self._at: Segment | None = None  # that is being read

    def read(self, sink: Sink) -> None:
        """Read all of it; whatever is wrong with its bytes is a problem, not an exception."""
        with AsideDigest() if self._aside else nullcontext(hashlib.sha256()) as digest:
            raw = _digested(self._chunks, digest)
            try:
                self._read(_Pieces(self._plain(raw)), sink)
            except EvidenceError as cause:
                self._found(ProblemKind.DAMAGED_BUNDLE, cause.message, self._at)
            except (tarfile.TarError, zstandard.ZstdError) as cause:
                self._found(ProblemKind.DAMAGED_BUNDLE, str(cause), self._at)
            for _ in raw:
                pass  # what is left counts for the digest
            found = digest.hexdigest()
        if found != self.name.sha256:
            self._found(ProblemKind.WRONG_DIGEST, f"its bytes have SHA-256 {found}")

    def _plain(self, raw: Iterator[bytes]) -> Iterator[bytes]:
        if self.name.suffix != COMPRESSED:
            return raw
        plain = decompressed(HashedReader(raw), suffix=self.name.suffix)
        return iter(partial(plain.read, _CHUNK_BYTES), b"")

    def _read(self, pieces: "_Pieces", sink: Sink) -> None:
        self.manifest = self._manifest(pieces)
        refused = [*self._of_manifest(self.manifest), *sink.accept(self.manifest)]
        self.problems += refused
        if refused:
            return
        for number, segment in enumerate(self.manifest.segments, start=1):
            self._at = segment
            self._segment(pieces, number, segment, sink)
        self._at = None
        pieces.expect(END, "members that its manifest does not name, or no end")
        pieces.expect_end()

    def _manifest(self, pieces: "_Pieces") -> Manifest:
        block = pieces.exactly(BLOCK)
        size = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape").size
        if size > MAX_DOCUMENT_BYTES or header(MANIFEST_NAME, size) != block:
            raise _bad("its first member is no manifest")
        data = pieces.exactly(size)
        pieces.expect(padding(size), "bytes behind its manifest")
        return read_canonical(data, Manifest, format_name=BUNDLE_FORMAT, name=f"{self.name}:{MANIFEST_NAME}")

    def _of_manifest(self, manifest: Manifest) -> Iterator[Problem]:
        said = (manifest.node_id, manifest.rank, manifest.sequence)
        if said != (self.name.key.node_id, self.name.key.rank, self.name.sequence):
            yield self._problem(ProblemKind.WRONG_NAME, "its manifest says node {}, rank {}, bundle {}".format(*said))
        for segment in manifest.segments:
            yield from (self._problem(ProblemKind.BAD_SEGMENT, why, segment) for why in faults_of(segment))

    def _segment(self, pieces: "_Pieces", number: int, segment: Segment, sink: Sink) -> None:
        name = member_name(number, segment)
        pieces.expect(header_of(number, segment), f"something else than {name!r} of {segment.length} bytes")
        checked = _Checked(pieces.span(segment.length), segment.kind)
        sink.take(segment, iter(checked))
        pieces.expect(padding(segment.length), f"bytes behind {name!r}")
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


class _Pieces:
    """The plain bytes of a bundle, taken in order: nothing is copied but what is small."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = memoryview(b"")

    def span(self, num_bytes: int) -> Iterator[memoryview]:
        """Yield the next `num_bytes` bytes.

        Raises:
            EvidenceError: Refused, code `bad_archive`: there are fewer.
        """
        while num_bytes:
            if not self._fill():
                raise _bad("it is cut off")
            piece = self._rest[:num_bytes]
            self._rest = self._rest[len(piece) :]
            num_bytes -= len(piece)
            yield piece

    def exactly(self, num_bytes: int) -> bytes:
        return b"".join(self.span(num_bytes))

    def expect(self, wanted: bytes, otherwise: str) -> None:
        if self.exactly(len(wanted)) != wanted:
            raise _bad(f"it holds {otherwise}")

    def expect_end(self) -> None:
        if self._fill():
            raise _bad("it holds bytes behind its end")

    def _fill(self) -> bool:
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return False
            self._rest = memoryview(chunk)
        return True


def _digested(chunks: Iterable[bytes], digest: Digest) -> Iterator[bytes]:
    for chunk in chunks:
        digest.update(chunk)
        yield chunk


class _Checked:
    """Bytes of a segment, hashed while they pass, and counted where they are records."""

    def __init__(self, chunks: Iterable[memoryview], kind: SegmentKind) -> None:
        self._chunks = chunks
        self._is_log = kind is SegmentKind.LOG
        self._digest = hashlib.sha256()
        self.records = 0
        self.ends = True

    def __iter__(self) -> Iterator[Buffer]:
        for chunk in self._chunks:
            self._digest.update(chunk)
            if self._is_log:
                data = bytes(chunk)
                self.records += data.count(b"\n")
                self.ends = data.endswith(b"\n")
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
    if segment.kind is SegmentKind.LOG and segment.executable:
        yield "a journal is no program"
    if segment.kind is SegmentKind.FILE and segment.offset:
        yield "a whole file begins at 0"


def _bad(why: str) -> EvidenceError:
    return EvidenceError(
        f"the bundle is damaged: {why}", code="bad_archive", fix="copy it again from where it was made"
    )
