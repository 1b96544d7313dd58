"""An opened source drawn into an append: its events one by one, its account as a capability (IN-10, IN-20)."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from paritrace.errors import HostError
from paritrace.files import LOCAL
from paritrace.inference.gathering import Gathering
from paritrace.inference.importing import Account, Imported
from paritrace.inference.records import Observation
from paritrace.runs.attaching import Reference

Marks = dict[str, tuple[int, int]]  # of files by path: how long each is, and when it was last written


def drawn_into(gathering: Gathering, imported: Imported, /, *, of: str) -> Account:
    """Take all events of an importer; what its generator returns is its account.

    Raises:
        EvidenceError: Refused, code `bad_event`; what the importer raises.
    """
    accounts: list[Account] = []

    def events() -> Iterator[Observation]:
        accounts.append((yield from imported.events))

    gathering.take_all(events(), of=of)
    return accounts[0]


def marks_of(attachments: Iterable[Reference], /) -> Marks:
    """Return the marks of files as they are now; those that cannot be looked at are left out."""
    found: Marks = {}
    for one in attachments:
        if one.path is not None:
            try:
                status = LOCAL.lstat(Path(one.path).resolve())
            except HostError:
                continue
            found[one.path] = status.st_size, status.st_mtime_ns
    return found


def collected_of(account: Account, /) -> tuple[str, ...]:
    """Return the names of what a source was found to hold."""
    return tuple(sorted(name for name, count in account.counts.items() if count))


def metadata_of(imported: Imported, account: Account, /) -> dict[str, object]:
    """Return what a capability event says of a source that was read."""
    return {
        "attachments": [one.attachment_id for one in imported.attachments],
        "complete": account.complete,
        "counts": dict(account.counts),
        "limits": list(account.limits),
        "stopped_at_byte": account.stopped_at_byte,
    }
