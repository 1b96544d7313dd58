"""What the last sync of a rank came to, kept beside its checkpoint for `store status` (ST-10, ST-13)."""

from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from paritrace.errors import EvidenceError, HostError, ParitraceError
from paritrace.files import Files
from paritrace.store.documents import canonical, staged_document
from paritrace.store.layout import StagedRank

FORMAT = "paritrace-store-outcome"
VERSION = "1.0"


class Trouble(Struct, frozen=True, forbid_unknown_fields=True):
    code: str
    message: str
    unix_ns: int


class Outcome(Struct, frozen=True, tag_field="type", tag="outcome", forbid_unknown_fields=True):
    """`last_success_unix_ns` 0: there was none yet. `last_error` stays until a sync succeeds."""

    format: str = FORMAT
    version: str = VERSION
    last_success_unix_ns: int = 0
    last_error: Trouble | None = None
    waiting_bytes: int = 0
    overdue_bytes: int = 0


def load_outcome(place: StagedRank, *, files: Files) -> Outcome:
    """Return what is kept; one that cannot be read is none: nothing depends on it."""
    try:
        return staged_document(place.outcome, Outcome, format_name=FORMAT, files=files) or Outcome()
    except (EvidenceError, HostError):
        return Outcome()


def keep_success(place: StagedRank, *, waiting_bytes: int, overdue_bytes: int, unix_ns: int, files: Files) -> None:
    """Write that a sync went well; a disk that is full for this is full for the checkpoint too, which says so."""
    told = Outcome(last_success_unix_ns=unix_ns, waiting_bytes=waiting_bytes, overdue_bytes=overdue_bytes)
    with suppress(HostError):
        files.replace(place.outcome, canonical(told))


def keep_trouble(place: StagedRank, error: ParitraceError, *, unix_ns: int, files: Files) -> None:
    """Write what a sync ended with; figures and last success stay."""
    trouble = Trouble(code=error.code, message=error.message, unix_ns=unix_ns)
    with suppress(HostError):
        if files.exists(place.state):
            files.replace(place.outcome, canonical(replace(load_outcome(place, files=files), last_error=trouble)))
