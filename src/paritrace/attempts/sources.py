"""Opens the evidence files that a manifest names: confined, bounded, by their digest (AT-1)."""

import os
from collections.abc import Iterator
from enum import StrEnum
from hashlib import sha256
from pathlib import Path

from paritrace.attempts.gaps import AttemptGap
from paritrace.attempts.loading import Loaded
from paritrace.attempts.origins import Source
from paritrace.attempts.reading import Unusable
from paritrace.errors import HostError, RequestError
from paritrace.files import LOCAL, Files

MAX_EVIDENCE_BYTES = 64 << 20  # of one result or record that is read whole; larger ones are unreadable evidence


class SourceState(StrEnum):
    """Whether a source still is what the manifest was written from."""

    AS_NAMED = "as_named"
    CHANGED = "changed"  # other bytes lie there now
    ABSENT = "absent"
    UNREADABLE = "unreadable"


class Sources:
    """The evidence files of one manifest.

    Raises, when made:
        RequestError: Refused, `path_outside`: a source lies outside the manifest's directory and its roots.
    """

    def __init__(self, loaded: Loaded, *, files: Files = LOCAL) -> None:
        self._files = files
        base = Path(loaded.path).parent
        allowed = [base.resolve(), *((base / root).resolve() for root in loaded.head.roots)]
        self._sources = {one.id: one for one in loaded.head.sources}
        self._paths = {one.id: _confined(base / one.path, allowed, name=loaded.path) for one in loaded.head.sources}
        self._states: dict[str, SourceState] = {}

    def path(self, source_id: str) -> Path:
        """Returns where a source lies."""
        return self._paths[source_id]

    def content(self, source_id: str) -> bytes | Unusable | None:
        """Returns the bytes of a result or record, None where there is no such file, or why it cannot be used."""
        source, path = self._sources[source_id], self._paths[source_id]
        try:
            if self._files.size(path) > MAX_EVIDENCE_BYTES:
                return Unusable(AttemptGap.RESULT_INVALID, f"has more than {MAX_EVIDENCE_BYTES:,} bytes")
            data = self._files.read(path)
        except HostError as error:
            return None if error.code == "not_found" else Unusable(AttemptGap.RESULT_INVALID, error.code)
        if source.sha256 is None:
            return Unusable(AttemptGap.RESULT_INVALID, "no digest was declared for it, and a file is there")
        if sha256(data).hexdigest() != source.sha256:
            return Unusable(AttemptGap.RESULT_INVALID, "is not the file that the manifest names: another digest")
        return data

    def state(self, source_id: str) -> SourceState:
        """Returns whether a source is as the manifest names it; each is hashed once, in bounded memory."""
        if source_id not in self._states:
            self._states[source_id] = self._look(self._sources[source_id], self._paths[source_id])
        return self._states[source_id]

    def _look(self, source: Source, path: Path) -> SourceState:
        digest = sha256()
        try:
            for chunk in self._files.iter_chunks(path):
                digest.update(chunk)
        except HostError as error:
            return SourceState.ABSENT if error.code == "not_found" else SourceState.UNREADABLE
        return SourceState.AS_NAMED if digest.hexdigest() == source.sha256 else SourceState.CHANGED

    def looked_at(self) -> Iterator[tuple[Source, SourceState]]:
        """Yields every source that was hashed, by its id."""
        for name in sorted(self._states):
            yield self._sources[name], self._states[name]


def _confined(path: Path, allowed: list[Path], *, name: str) -> Path:
    """The path, resolved, if it lies below one of these folders; links that lead outside are outside."""
    resolved = Path(os.path.realpath(path))  # a loop of links resolves to itself, and cannot be read
    if any(resolved.is_relative_to(folder) for folder in allowed):
        return resolved
    raise RequestError(
        f"{name} names {path}, outside its directory and its roots",
        code="path_outside",
        fix="list the directory in `roots` if it is meant, or move the evidence beside the manifest",
    )
