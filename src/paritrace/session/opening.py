"""Reads what a session's directory says of it; nobody is asked, so it works whether its owner lives or not (SE-18)."""

from pathlib import Path

from msgspec import json as msgspec_json

from paritrace.errors import RequestError
from paritrace.files import LOCAL, Files
from paritrace.session.directory import JOURNAL, SESSION, TOKEN, SessionRecord
from paritrace.session.journal import Journal, journal_of


def read_session(directory: Path, /, *, files: Files = LOCAL) -> SessionRecord:
    """Return the record of a session's directory.

    Raises:
        RequestError: Refused, `not_a_session`.
    """
    data = files.read_if_present(directory / SESSION)
    if data is None:
        raise RequestError(
            f"{directory} holds no session",
            code="not_a_session",
            fix="`paritrace session start DIR WORKLOAD` makes one",
        )
    try:
        return msgspec_json.decode(data, type=SessionRecord)
    except ValueError as error:
        raise RequestError(
            f"{directory / SESSION} cannot be read: {error}",
            code="not_a_session",
            fix="start it again with the paritrace that made it; its journal stays",
        ) from None


def read_journal(directory: Path, /, *, files: Files = LOCAL) -> Journal:
    """Return the journal of a session's directory, empty where there is none yet; no owner is asked.

    Raises:
        EvidenceError: Refused: as `journal_of`.
    """
    data = files.read_if_present(directory / JOURNAL)
    return Journal() if data is None else journal_of(data)


def read_token(directory: Path, /, *, files: Files = LOCAL) -> str:
    """Return the token of a session.

    Raises:
        HostError: Refused: it is another user's, or there is none.
    """
    return files.read(directory / TOKEN).decode("ascii", "replace").strip()
