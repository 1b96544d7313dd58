"""Names in a session's directory, and the record that says whose it is and where it answers (SE-18)."""

from pathlib import Path
from typing import Any

from msgspec import Struct, field

from paritrace.evidence.ids import ProcessIdentity

FORMAT = "paritrace-session"
VERSION = "1.0"
SESSION, LOCK, TOKEN, JOURNAL = "session.json", "owner.lock", "token", "journal.jsonl"
LOGS = "logs"
CHECKPOINTS, CAPTURES, CONFIGS, FAILURES, GROUP = "checkpoints", "captures", "configs", "failures", "group"


class SessionRecord(Struct, frozen=True, forbid_unknown_fields=True):
    """`session.json`: who the session is, which process owns it, where that one answers.

    It stays when the owner has gone; whether the owner lives is said by the lock, never by this file.
    """

    session_id: str
    engine: str
    workload: str
    arguments: dict[str, Any]
    world_size: int
    owner: ProcessIdentity
    host: str  # address of the HTTP API
    port: int
    created_unix_ns: int
    bounds: dict[str, float] = field(default_factory=dict[str, float])
    format: str = FORMAT
    version: str = VERSION

    @property
    def url(self) -> str:
        """The address of the HTTP API."""
        return f"http://{self.host}:{self.port}"


def config_path(directory: Path, revision: int, /) -> Path:
    """Where the configuration of a revision stands."""
    return directory / CONFIGS / f"{revision}.json"


def failure_name(generation: int, /) -> str:
    """Where the failure report of a generation stands within the session's directory."""
    return f"{FAILURES}/{generation}.json"
