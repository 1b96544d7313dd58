"""A moving window over the text of a trace: plain or gzip, in bounded memory, with the offset of every byte."""

import zlib
from collections.abc import Callable, Iterable, Iterator

from paritrace.inference.importers.kineto_stops import Stopped, StopReason

GZIP_MAGIC = b"\x1f\x8b"
_GZIP_WINDOW = 31  # of zlib: gzip header and trailer, whose checksum is verified
_PIECE_BYTES = 1 << 20  # what one compressed chunk may grow to at once, whatever it is compressed from


def plain(chunks: Iterable[bytes], /) -> Iterator[bytes]:
    """Yield the text of a trace; gzip is known by its first two bytes, and may have several members.

    Raises:
        Stopped: `gzip_ends`, `gzip_damaged`; what came before was yielded. `byte` is that of the uncompressed text.
    """
    source = (chunk for chunk in chunks if chunk)
    head = b""
    while len(head) < len(GZIP_MAGIC) and (chunk := next(source, b"")):
        head += chunk
    if not head.startswith(GZIP_MAGIC):
        yield head
        yield from source
        return
    yield from _unpacked(head, source)


def _unpacked(head: bytes, source: Iterator[bytes]) -> Iterator[bytes]:
    packed, count = head, 0
    state = zlib.decompressobj(_GZIP_WINDOW)
    while True:
        before = state.copy()
        try:
            piece = state.decompress(packed, _PIECE_BYTES)
        except zlib.error as error:
            for piece in _up_to_damage(before.decompress, packed):
                count += len(piece)
                yield piece
            raise Stopped(StopReason.GZIP_DAMAGED, count, str(error)) from None
        count += len(piece)
        yield piece
        packed = state.unconsumed_tail
        if state.eof:
            packed = (state.unused_data or next(source, b"")).lstrip(b"\0")  # members may be padded
            if not packed:
                return
            state = zlib.decompressobj(_GZIP_WINDOW)
        elif not packed and len(piece) < _PIECE_BYTES:
            packed = next(source, b"")
            if not packed:
                raise Stopped(StopReason.GZIP_ENDS, count)


def _up_to_damage(decompress: Callable[[bytes], bytes], packed: bytes) -> Iterator[bytes]:
    """Yield what comes out byte by byte before the damage: a call that fails gives nothing of what it had."""
    for place in range(len(packed)):
        try:
            yield decompress(packed[place : place + 1])
        except zlib.error:
            return


class Window:
    """`data[at:]` is what lies ahead; `offset` is where `data` begins in the text."""

    def __init__(self, chunks: Iterable[bytes], /) -> None:
        self._chunks = plain(chunks)
        self._cut: Stopped | None = None
        self._ended = False
        self.data = b""
        self.at = 0
        self.offset = 0

    @property
    def byte(self) -> int:
        """The offset in the text of the next byte."""
        return self.offset + self.at

    def holds(self, num_bytes: int, /) -> bool:
        """Take in what is needed so that `num_bytes` lie ahead; say whether they do."""
        if len(self.data) - self.at >= num_bytes:
            return True
        pieces, have = [self.data[self.at :]], len(self.data) - self.at
        while have < num_bytes and not self._ended:
            piece = self._next()
            pieces.append(piece)
            have += len(piece)
        self.offset += self.at
        self.data, self.at = b"".join(pieces), 0
        return have >= num_bytes

    def ends(self) -> Stopped:
        """Say why nothing more comes: what cut the compressed data, else that the file ends here."""
        return self._cut or Stopped(StopReason.FILE_ENDS, self.offset + len(self.data))

    def whole(self) -> bool:
        """Say whether the source came to its end by itself; True only once it has been read to there."""
        return self._ended and self._cut is None

    def _next(self) -> bytes:
        try:
            piece = next(self._chunks, None)
        except Stopped as cut:
            self._cut, self._ended = cut, True
            return b""
        self._ended = piece is None
        return piece or b""
