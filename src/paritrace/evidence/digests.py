"""Digests: SHA-256 of bytes in hex; fingerprints are elsewhere and never stand in for one."""

import hashlib
import re
from collections.abc import Iterable

from msgspec import Struct

_SHA256 = re.compile(r"[0-9a-f]{64}\Z")


class DigestOfBytes(Struct, frozen=True):
    num_bytes: int
    sha256: str


class PrefixAndWhole(Struct, frozen=True):
    """`prefix_sha256` is that of all bytes when there are fewer than were asked for."""

    num_bytes: int
    sha256: str
    prefix_sha256: str


def sha256_hex(data: bytes) -> str:
    """Return the SHA-256 of `data` as 64 lower-case hex digits."""
    return hashlib.sha256(data).hexdigest()


def sha256_of(chunks: Iterable[bytes]) -> DigestOfBytes:
    """Return length and SHA-256 of a stream of bytes; memory is one chunk."""
    state, num_bytes = hashlib.sha256(), 0
    for chunk in chunks:
        state.update(chunk)
        num_bytes += len(chunk)
    return DigestOfBytes(num_bytes=num_bytes, sha256=state.hexdigest())


def sha256_with_prefix(chunks: Iterable[bytes], *, prefix_bytes: int) -> PrefixAndWhole:
    """Return length and SHA-256 of a stream and of its first `prefix_bytes` bytes, in one pass."""
    state, num_bytes = hashlib.sha256(), 0
    prefix = state.hexdigest() if prefix_bytes == 0 else ""
    for chunk in chunks:
        left = prefix_bytes - num_bytes
        num_bytes += len(chunk)
        if 0 < left <= len(chunk):
            state.update(memoryview(chunk)[:left])
            prefix = state.hexdigest()
            state.update(memoryview(chunk)[left:])
        else:
            state.update(chunk)
    whole = state.hexdigest()
    return PrefixAndWhole(num_bytes=num_bytes, sha256=whole, prefix_sha256=prefix or whole)


def is_sha256(text: str) -> bool:
    """Say whether `text` is spelled as a SHA-256: 64 lower-case hex digits."""
    return _SHA256.match(text) is not None
