"""The session of a program that is recorded and not captured: entered beside it, sealed with its record (RR-8)."""

import os
from pathlib import Path

from paritrace.clock import SYSTEM, Clock
from paritrace.errors import EvidenceError, ParitraceError
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
        self._begun = False

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
        try:
            self._session = begin_session(self._root, request, files=self._files, clock=self._clock)
        except EvidenceError as error:
            if error.code != "session_exists":  # of another host of this process, which ends it
                raise
        self._begun = True

    def begin_beside(self, record: Path) -> None:
        """Enter the session while the program runs already, with its record; a failure is kept."""
        try:
            if not self._begun:
                self.begin()
            register_record(self._root, record, live=True, files=self._files, clock=self._clock)
        except ParitraceError as error:
            self.trouble = self.trouble or error

    def add(self, record: Path) -> ParitraceError | None:
        """Register a record that has its end; returns what kept it from being registered."""
        try:
            if not self._begun:
                self.begin()
            if self._files.exists(record):
                register_record(self._root, record, live=False, files=self._files, clock=self._clock)
        except ParitraceError as error:
            self.trouble = self.trouble or error
            return error
        return None

    def close(self) -> None:
        """End the session where it was entered; a failure is kept."""
        session, self._session = self._session, None
        try:
            if session is not None:
                session.end(SessionStatus.COMPLETED, Receipt(lines=0, calls=0, details=0, states=0))
        except ParitraceError as error:
            self.trouble = self.trouble or error
