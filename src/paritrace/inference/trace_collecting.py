"""A profiler's trace that lies in a file, as the trace collector of an append (IN-5, IN-10)."""

from pathlib import Path

from msgspec import Struct

from paritrace.inference.importers.choosing import checked_options, reader_of
from paritrace.inference.importing import Asked, Imported, Scope, SourceKind


class ProfilerTrace(Struct, frozen=True):
    """The trace at `path`. `options`: as `paritrace infer import trace --with` takes them."""

    path: Path
    options: dict[str, str] = {}

    def collect(self, *, run_id: str, session_id: str) -> Imported:
        """Open the trace; its events are read while they are appended.

        Raises:
            EvidenceError, RequestError: Refused: no format of a trace, an option that the format does not have.
        """
        reader = reader_of(SourceKind.TRACE, self.path, named=None)
        return reader.open(Asked(self.path, Scope(run_id, session_id), checked_options(reader, self.options)))
