"""The session of a program that is recorded and not captured: entered beside it, sealed with its record (RR-8)."""

import os
from pathlib import Path

from paritrace.clock import SYSTEM, Clock
from paritrace.errors import ParitraceError
from paritrace.evidence.digests import sha256_hex
from paritrace.files import LOCAL, Files
from paritrace.process.identity import own_identity
from paritrace.runs.envelope import Receipt, Role, SessionStatus
from paritrace.runs.launch import launch_of
from paritrace.runs.opening import SessionRequest, begin_session
from paritrace.runs.record_rows import register_record
from paritrace.runs.session import OpenSession

NO_CONFIGURATION = sha256_hex(b"")
"""The configuration of a program that is only recorded: nothing of ours is set in it."""


class RecordedSession:
    """Enters a session with the role `record` into a run directory. What fails later is kept in `trouble`."""

    def __init__(self, root: Path, *, title: str = "", files: Files = LOCAL, clock: Clock = SYSTEM) -> None:
        self.trouble: ParitraceError | None = None
        self._root = root
        self._title = title
        self._files = files
        self._clock = clock
        self._session: OpenSession | None = None

    def begin(self) -> None:
        """Enter the session.

        Raises:
            EvidenceError, HostError, RequestError: Refused, as `begin_session` says.
        """
        process = own_identity()
        request = SessionRequest(
            role=Role.RECORD,
            launch=launch_of(os.environ, process=process),
            process=process,
            config_digest=NO_CONFIGURATION,
            title=self._title or None,
        )
        self._session = begin_session(self._root, request, files=self._files, clock=self._clock)

    def begin_beside(self, record: Path) -> None:
        """Enter the session while the program runs already, with its record; a failure is kept."""
        try:
            if self._session is None:
                self.begin()
            register_record(self._root, record, live=True, files=self._files, clock=self._clock)
        except ParitraceError as error:
            self.trouble = self.trouble or error

    def end(self, record: Path) -> None:
        """Seal the record and end the session; a failure is kept."""
        try:
            if self._session is None:
                self.begin()
            assert self._session is not None
            if self._files.exists(record):
                register_record(self._root, record, live=False, files=self._files, clock=self._clock)
            self._session.end(SessionStatus.COMPLETED, Receipt(lines=0, calls=0, details=0, states=0))
        except ParitraceError as error:
            self.trouble = self.trouble or error
