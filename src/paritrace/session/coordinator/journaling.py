"""The one writer of a session's journal: whole lines, forced to disk where a line says so (SE-15)."""

from pathlib import Path

from paritrace.clock import SYSTEM, Clock
from paritrace.files import LOCAL, Files
from paritrace.session.commands import Body
from paritrace.session.directory import JOURNAL
from paritrace.session.journal import Line, encoded


class JournalWriter:
    """Numbers lines on from the last one. Used by the coordinator's main thread alone."""

    def __init__(self, directory: Path, *, sequence: int, files: Files = LOCAL, clock: Clock = SYSTEM) -> None:
        self._path = directory / JOURNAL
        self._sequence = sequence
        self._files = files
        self._clock = clock
        self._appender = None if not files.exists(self._path) else files.append_existing(self._path)

    def write(self, what: str, facts: Body, *, generation: int, durable: bool = False) -> Line:
        """Append one line; `durable`: it is on disk when this returns.

        Raises:
            HostError: Refused or Failed, as `Appender.write` and `Appender.sync` say.
        """
        if self._appender is None:
            self._appender = self._files.append_new(self._path)
        self._sequence += 1
        line = Line(self._sequence, self._clock.wall_ns(), generation, what, facts)
        self._appender.write(encoded(line))
        if durable:
            self._appender.sync()
        return line

    def close(self) -> None:
        """Force all to disk and let go of the file."""
        if self._appender is not None:
            self._appender.sync()
            self._appender.close()
