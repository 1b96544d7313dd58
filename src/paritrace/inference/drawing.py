"""An opened source drawn into an append: its events one by one, its account as a capability (IN-10, IN-20)."""

from collections.abc import Iterator

from paritrace.inference.gathering import Gathering
from paritrace.inference.importing import Account, Imported
from paritrace.inference.records import Observation


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
