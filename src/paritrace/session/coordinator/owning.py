"""Owns a session's directory: a kernel lock while the coordinator lives, and a token for its user alone (SE-18)."""

import os
import secrets
import shlex
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from msgspec import json as msgspec_json

from paritrace.errors import HostError, RequestError
from paritrace.files import LOCAL, TEMPORARY_PREFIX, Files
from paritrace.loopback.tokens import TOKEN_BYTES
from paritrace.process.identity import own_identity
from paritrace.session.directory import LOCK, LOGS, SESSION, TOKEN, SessionRecord
from paritrace.session.opening import read_session

OWNED_WAIT_SECONDS = 3.0  # a session that was just closed lets go of its server and its ranks first; others never do


@contextmanager
def owned(directory: Path, /, *, files: Files = LOCAL) -> Generator[None]:
    """Own `directory`, which is made where it is missing, while the block runs; the kernel lets go with the process.

    Raises:
        HostError: Refused, `session_owned`: another coordinator lives in it.
        RequestError: Refused, `not_a_session`: it holds something else.
    """
    files.mkdir(directory)
    require_session_or_empty(directory, files=files)
    mark = msgspec_json.encode(own_identity())
    try:
        with files.locked_by(directory / LOCK, mark, admits=lambda _left: None, wait_seconds=OWNED_WAIT_SECONDS):
            yield
    except HostError as error:
        if error.code != "lock_timeout":
            raise
        quoted = shlex.quote(str(directory))
        raise HostError(
            f"{directory} has an owner that lives{_who(directory, files=files)}",
            code="session_owned",
            fix=f"`paritrace session status {quoted}` asks it; `paritrace session close {quoted}` ends it",
        ) from None


def require_session_or_empty(directory: Path, /, *, files: Files = LOCAL) -> None:
    """Refuse a directory that holds something else than a session.

    Raises:
        RequestError: Refused, `not_a_session`.
    """
    names = [path.name for path in files.list(directory) if path.name != LOGS]
    if names and LOCK not in names:
        raise RequestError(
            f"{directory} holds {names[0]} and is no session's directory",
            code="not_a_session",
            fix="name a new directory, or that of an earlier session",
        )


def _who(directory: Path, *, files: Files) -> str:
    data = files.read_if_present(directory / SESSION)
    if data is None:
        return ""
    owner = read_session(directory, files=files).owner
    return f": process {owner.pid} of {owner.host}"


def write_session(directory: Path, record: SessionRecord, /, *, files: Files = LOCAL) -> None:
    """Write the record of a session's directory."""
    files.replace(directory / SESSION, msgspec_json.format(msgspec_json.encode(record)) + b"\n")


def write_token(directory: Path, /, *, files: Files = LOCAL) -> str:
    """Draw a token and write it into a file of mode 0600, in place of an earlier one; return it (SE-17)."""
    token = secrets.token_urlsafe(TOKEN_BYTES)
    hidden = directory / f"{TEMPORARY_PREFIX}{os.urandom(8).hex()}.tmp"
    files.write_scratch(hidden, [token.encode()])
    files.rename(hidden, directory / TOKEN)
    return token
