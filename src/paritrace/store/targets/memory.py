"""A target in this process's memory, for tests and trials; `faults` makes its next operations go wrong (ST-14)."""

import hashlib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from paritrace.errors import HostError, ParitraceError
from paritrace.files import LOCAL, Files
from paritrace.store.targets.naming import checked_name, conflict, is_hidden
from paritrace.store.targets.protocol import READ_CHUNK_BYTES, Entry, Put
from paritrace.store.targets.source_check import SourceCheck
from paritrace.store.throttle import CHUNK_BYTES, Throttle

_SHARED: dict[str, dict[str, bytes]] = defaultdict(dict)  # what `memory://NAME` holds, for as long as the process lives


class MemoryTarget:
    """Objects in a dictionary. `faults` holds errors for the next operations, in order: one is taken by each.

    `loses_reply`: the next put is done, and then its error is raised all the same.
    """

    def __init__(self, name: str, *, objects: dict[str, bytes] | None = None, files: Files = LOCAL) -> None:
        self.label = f"memory://{name}"
        self.objects = _SHARED[name] if objects is None else objects
        self.faults: list[ParitraceError] = []
        self.loses_reply = False
        self._files = files

    def list(self, prefix: str, /) -> Iterator[Entry]:
        """As `Target` says."""
        self._meet_fault()
        for name in sorted(self.objects):
            if name.startswith(prefix) and not is_hidden(name):
                yield Entry(name, len(self.objects[name]))

    def put_if_absent(self, name: str, source: Path, /, *, sha256: str, throttle: Throttle, checksum: str = "") -> Put:
        """As `Target` says."""
        checked_name(name)
        if not self.loses_reply:
            self._meet_fault()
        data = self._paced(source, SourceCheck(source, sha256=sha256, checksum=checksum), throttle)
        found = self.objects.setdefault(name, data)
        self.loses_reply = False
        self._meet_fault()
        if found is data:
            return Put.PUBLISHED
        if found != data:
            raise conflict(self.label, name, found=hashlib.sha256(found).hexdigest(), wanted=sha256)
        return Put.ALREADY_THERE

    def read(self, name: str, /) -> Iterator[bytes]:
        """As `Target` says."""
        checked_name(name)
        self._meet_fault()
        if name not in self.objects:
            raise HostError(
                f"{self.label}: {name} cannot be found from here",
                code="not_visible_here",
                fix="a memory target lives in the process that wrote it: read it there",
            )
        data = self.objects[name]
        for start in range(0, len(data), READ_CHUNK_BYTES):
            yield data[start : start + READ_CHUNK_BYTES]

    def drop_leftovers(self, folder: str, /) -> None:
        """Nothing is visible or in the way before it is whole."""

    def probe(self) -> None:
        """A dictionary keeps its first value: there is nothing to try."""
        self._meet_fault()

    def _paced(self, source: Path, check: SourceCheck, throttle: Throttle) -> bytes:
        data = bytearray()
        for chunk in self._files.iter_chunks(source, chunk_bytes=CHUNK_BYTES):
            throttle.take(len(chunk))
            check.update(chunk)
            data += chunk
        check.require()
        return bytes(data)

    def _meet_fault(self) -> None:
        if self.faults:
            raise self.faults.pop(0)
