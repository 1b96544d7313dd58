"""Digests: SHA-256 of bytes in hex; fingerprints are elsewhere and never stand in for one."""

import hashlib
import re
from collections.abc import Iterable

from msgspec import Struct

_SHA256 = re.compile(r"[0-9a-f]{64}\Z")


class DigestOfBytes(Struct, frozen=True):
    num_bytes: int
    sha256: str


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


def is_sha256(text: str) -> bool:
    """Say whether `text` is spelled as a SHA-256: 64 lower-case hex digits."""
    return _SHA256.match(text) is not None
