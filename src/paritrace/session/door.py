"""The way from a program to a session's coordinator: one kept connection, without delay and without proxies (SE-17)."""

import socket
import time
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

import msgspec

from paritrace.errors import HostError, InternalError, Outcome
from paritrace.process.identity import Life, liveness
from paritrace.session.opening import read_journal, read_session, read_token
from paritrace.session.replaying import replayed
from paritrace.session.told_errors import error_of

Answered = TypeVar("Answered")

ANSWERS_WITHIN_SECONDS = 30.0  # beyond the time that was asked to wait: the main thread writes reports for seconds
IDLE_SECONDS = 3.0  # a server closes a kept connection after five
_NOT_THERE = (ConnectionError, TimeoutError, HTTPException, socket.gaierror)


class Door:
    """Nothing is read or connected before the first question. One thread at a time."""

    def __init__(self, directory: Path, *, answers_within_seconds: float = ANSWERS_WITHIN_SECONDS) -> None:
        self.directory = directory
        self._patience = answers_within_seconds
        self.lease: str | None = None
        self._connection: HTTPConnection | None = None
        self._token = ""
        self._used = 0.0

    def ask(
        self,
        method: str,
        path: str,
        kind: type[Answered],
        *,
        query: Mapping[str, Any] | None = None,
        body: object = None,
        wait_seconds: float = 0.0,
    ) -> Answered:
        """Return the record that a route answers with.

        Raises:
            RequestError, HostError: what the coordinator refuses or says.
            HostError: `coordinator_gone`: nobody answers; the message says what the journal knows.
        """
        given = {name: value for name, value in (query or {}).items() if value is not None}
        if wait_seconds:
            given["wait_seconds"] = wait_seconds
        address = f"/v1/{path}" + (f"?{urlencode(given)}" if given else "")
        data = None if body is None else msgspec.json.encode(body)
        status, told = self._exchange(method, address, data, wait_seconds=wait_seconds)
        if status >= 400:
            raise error_of(told)
        try:
            return msgspec.json.decode(told, type=kind)
        except msgspec.DecodeError as error:
            raise InternalError(
                f"the coordinator's answer cannot be read: {error}",
                code="internal",
                fix="use the paritrace that the session was started with",
            ) from None

    def close(self) -> None:
        """Let go of the connection; the next question makes another one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _exchange(self, method: str, address: str, data: bytes | None, *, wait_seconds: float) -> tuple[int, bytes]:
        """Ask, and once more where a kept connection turns out closed: commands have ids, nothing is done twice."""
        kept = self._connection is not None and time.monotonic() - self._used < IDLE_SECONDS
        if not kept:
            self.close()
        try:
            return self._asked(method, address, data, wait_seconds=wait_seconds)
        except _NOT_THERE as error:
            self.close()
            if not kept or isinstance(error, TimeoutError):
                raise self._gone(error) from None
        try:
            return self._asked(method, address, data, wait_seconds=wait_seconds)
        except _NOT_THERE as error:
            self.close()
            raise self._gone(error) from None

    def _asked(self, method: str, address: str, data: bytes | None, *, wait_seconds: float) -> tuple[int, bytes]:
        connection = self._connected()
        assert connection.sock is not None
        connection.sock.settimeout(wait_seconds + self._patience)
        headers = {"Authorization": f"Bearer {self._token}"}
        if self.lease is not None:
            headers["Paritrace-Lease"] = self.lease
        if data is not None:
            headers["Content-Type"] = "application/json"
        connection.request(method, address, body=data, headers=headers)
        answer = connection.getresponse()
        told = answer.read()
        self._used = time.monotonic()
        return answer.status, told

    def _connected(self) -> HTTPConnection:
        if self._connection is None:
            record = read_session(self.directory)
            self._token = read_token(self.directory)
            connection = HTTPConnection(record.host, record.port, timeout=self._patience)
            connection.connect()  # which sets TCP_NODELAY
            self._connection = connection
        return self._connection

    def _gone(self, error: BaseException) -> HostError:
        owner = read_session(self.directory).owner
        lives = liveness(owner)
        known = replayed(read_journal(self.directory))
        told = [f"generation {known.generation}, configuration revision {known.config_revision}, step {known.step}"]
        told += [f"in flight: {one.kind.value} {one.id} ({one.last})" for one in known.in_flight]
        if lives.life is Life.ALIVE:
            return HostError(
                f"the coordinator does not answer ({type(error).__name__}), and {lives.why}",
                code="coordinator_silent",
                fix="try again; if it stays silent, end that process: its ranks go with it",
                outcome=Outcome.FAILED,
                details=tuple(told),
            )
        return HostError(
            f"{'the session is closed' if known.closed else 'the coordinator is gone'}: {lives.why}",
            code="coordinator_gone",
            fix="`paritrace session start` in the same directory goes on from its journal and checkpoints",
            details=tuple(told),
        )
