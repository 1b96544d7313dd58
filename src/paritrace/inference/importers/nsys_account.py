"""What was read of one Nsight Systems export, table by table, and what it cannot say (IN-11)."""

from collections import Counter

from paritrace.inference.importers.nsys_diagnostics import Diagnosed
from paritrace.inference.importers.nsys_tables import Presence, TableFound
from paritrace.inference.importing import Account
from paritrace.inference.vocabulary import LossStatus

_WARNINGS_TOLD = 5


def said_of(what: str, found: TableFound, /, *, num_rows: int = 0) -> str:
    """Return in words which of four things is true of a table: they are not the same (B-21)."""
    match found.presence:
        case Presence.ABSENT:
            return f"{what}: not recorded (the export has no such table)"
        case Presence.EMPTY:
            return f"{what}: 0 (recorded, table {found.name} is empty)"
        case Presence.UNKNOWN_VERSION:
            return f"{what}: not read (table {found.name} lacks {', '.join(found.missing)})"
        case Presence.PRESENT:
            return f"{what}: {num_rows:,} (table {found.name})"


class NsysAccount:
    """Gathers while an export is read."""

    def __init__(self) -> None:
        self._tables: dict[str, TableFound] = {}
        self.rows: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self.diagnosed: Diagnosed | None = None
        self.stopped = ""

    def see(self, what: str, found: TableFound, /) -> None:
        """Take in which table stands for a kind of evidence."""
        self._tables[what] = found

    def account(self) -> Account:
        """Return the account; it is complete only where every table could be read and nothing tells of a loss."""
        lost = self.diagnosed is not None and any(one.status is LossStatus.REPORTED for one in self.diagnosed.losses)
        unread = any(found.presence is Presence.UNKNOWN_VERSION for found in self._tables.values())
        counts = {
            f"{what}": self.rows[what] for what in self._tables if self._tables[what].presence is not Presence.ABSENT
        }
        counts |= {name: self.counts[name] for name in sorted(self.counts)}
        if self.diagnosed is not None:
            counts |= {f"diagnostic:{name}": self.diagnosed.counts[name] for name in sorted(self.diagnosed.counts)}
        return Account(complete=not (self.stopped or lost or unread), counts=counts, limits=tuple(self._limits()))

    def _limits(self) -> list[str]:
        limits = [self.stopped] if self.stopped else []
        limits += [said_of(what, found, num_rows=self.rows[what]) for what, found in self._tables.items()]
        if self.diagnosed is not None:
            limits += self.diagnosed.warnings[:_WARNINGS_TOLD]
            if not self.diagnosed.losses:
                limits.append("its diagnostics do not say whether events were lost")
        return limits
