"""Whether the bytes of a put are those that were recorded, told while they are sent (ST-8a)."""

import hashlib
import os
from pathlib import Path

import xxhash

from paritrace.errors import EvidenceError


class SourceCheck:
    """Takes the bytes of one file in order.

    Args:
        checksum: their XXH3-128; it costs a fiftieth of a SHA-256, and what it must find is a disk's mistake. Empty
            where none was recorded: then the SHA-256 is computed.
    """

    def __init__(self, source: Path, *, sha256: str, checksum: str) -> None:
        self._source = source
        self._state = xxhash.xxh3_128() if checksum else hashlib.sha256()
        self._wanted = checksum or sha256

    def update(self, data: bytes) -> None:
        self._state.update(data)

    def require(self) -> None:
        """Refuse to publish other bytes than were recorded.

        Raises:
            EvidenceError: Refused, code `staged_bytes_changed`.
        """
        found = self._state.hexdigest()
        if found != self._wanted:
            raise EvidenceError(
                f"{os.fspath(self._source)} has other bytes than were recorded"
                f" (digest {found[:12]}…, not {self._wanted[:12]}…)",
                code="staged_bytes_changed",
                fix="the staging disk changed a file that nobody writes: check the disk; nothing was published",
            )
