"""A bundle as bytes: a tar whose first member is its manifest, in one zstd frame where that pays (ST-8)."""

import tarfile
from collections.abc import Iterable, Iterator
from functools import cache

import zstandard

from paritrace.store.documents import canonical
from paritrace.store.records import Manifest, Segment

MANIFEST_NAME = "manifest.json"
LEVEL = 1  # measured on traces: both faster and smaller than level 3 (docs/formats/store.md)
TRIED_BYTES = 1 << 17  # of each segment: enough to see whether its bytes are random
PAYS_BELOW = 0.9  # of the size; above it reading is slower and hardly anything is saved
BLOCK = tarfile.BLOCKSIZE
END = bytes(2 * BLOCK)
_DESCRIPTOR_AT, _HAS_CHECKSUM, _CHECKSUM_BYTES = 4, 1 << 2, 4  # of a frame, by RFC 8878
_MODE, _EXECUTABLE_MODE = 0o644, 0o755
_SIZE_AT, _SUM_AT = 124, 148  # of a header, by POSIX 1003.1 (ustar)
_LARGEST_OCTAL = 8**11 - 1  # a larger size is written in another way
_ZERO = ord("0")


def member_name(number: int, segment: Segment) -> str:
    """Return the tar name of a segment, numbered from 1: two segments of one bundle may have one path."""
    return f"{number:05d}/{segment.path}"


def tar_of(manifest: Manifest, contents: Iterable[Iterable[bytes]]) -> Iterator[bytes]:
    """Yield the tar of a bundle; `contents` are the bytes of the segments, in order. Equal input gives equal bytes."""
    document = canonical(manifest)
    yield header(MANIFEST_NAME, len(document))
    yield document + padding(len(document))
    for number, (segment, chunks) in enumerate(zip(manifest.segments, contents, strict=True), start=1):
        yield header_of(number, segment)
        yield from chunks
        yield padding(segment.length)
    yield END


def compressed(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the chunks as one zstd frame with a checksum of its content."""
    compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True).compressobj()
    for chunk in chunks:
        if data := compressor.compress(chunk):
            yield data
    yield compressor.flush()


def without_checksum(frame: Iterator[bytes]) -> Iterator[bytes]:
    """Yield what `compressed` gave, as a frame that asks for no check of its content: for telling what is wrong in it.

    The library gives out nothing of a small frame whose check fails.
    """
    held = bytearray(next(frame, b""))
    if len(held) > _DESCRIPTOR_AT:
        held[_DESCRIPTOR_AT] &= ~_HAS_CHECKSUM
    for chunk in frame:
        yield bytes(held[:-_CHECKSUM_BYTES])
        held = held[-_CHECKSUM_BYTES:] + chunk
    yield bytes(held[:-_CHECKSUM_BYTES])


def compressed_size(sample: bytes) -> int:
    """Return how many bytes a sample needs at our level."""
    return len(zstandard.ZstdCompressor(level=LEVEL).compress(sample))


def header_of(number: int, segment: Segment) -> bytes:
    """Return the tar header of a segment."""
    mode = _EXECUTABLE_MODE if segment.executable else _MODE
    return header(member_name(number, segment), segment.length, mode=mode)


def header(name: str, num_bytes: int, *, mode: int = _MODE) -> bytes:
    """Return a tar header without owner and times, so that equal bundles have equal bytes."""
    told = name.encode("utf-8", "surrogateescape")
    if len(told) > tarfile.LENGTH_NAME or num_bytes > _LARGEST_OCTAL:
        return _made_header(name, num_bytes, mode)
    template, total = _template(mode)
    size = b"%011o" % num_bytes
    told_sum = b"%06o" % (total + sum(told) + sum(size) - len(size) * _ZERO)
    return b"".join(
        (
            told.ljust(tarfile.LENGTH_NAME, b"\0"),
            template[tarfile.LENGTH_NAME : _SIZE_AT],
            size,
            template[_SIZE_AT + len(size) : _SUM_AT],
            told_sum,
            template[_SUM_AT + len(told_sum) :],
        )
    )


def _made_header(name: str, num_bytes: int, mode: int) -> bytes:
    info = tarfile.TarInfo(name)
    info.size = num_bytes
    info.mode = mode
    return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")


@cache
def _template(mode: int) -> tuple[bytes, int]:
    """Return the header of an empty file without a name, and the sum in it: making one anew takes 30 us of CPU."""
    block = _made_header("", 0, mode)
    return block, int(block[_SUM_AT : _SUM_AT + 6], 8)


def padding(num_bytes: int) -> bytes:
    """Return the zeros that fill a member's last block."""
    return bytes(-num_bytes % BLOCK)
