"""A session as readers see it: what is recorded and what may be said of it now (EV-17)."""

from pathlib import Path

from msgspec import Struct

from paritrace.errors import ParitraceError
from paritrace.evidence.gaps import Gap, RunGap
from paritrace.evidence.surroundings import Surroundings
from paritrace.files import Files
from paritrace.process.identity import liveness
from paritrace.runs.documents import read_receipt
from paritrace.runs.envelope import ReceiptDocument, Session, SessionStatus
from paritrace.runs.status import SeenStatus, seen_status


class SessionView(Struct, frozen=True):
    """A session as a reader sees it: its row, its receipt, and the status that may be stated (EV-17).

    `damage` is not empty when there is a receipt that cannot be read.
    """

    row: Session
    receipt: ReceiptDocument | None
    damage: str
    seen: SeenStatus

    @property
    def session_id(self) -> str:
        return self.row.session_id

    @property
    def rank(self) -> int:
        return self.row.rank

    @property
    def incarnation(self) -> int:
        return self.row.incarnation

    @property
    def status(self) -> SessionStatus:
        return self.seen.status

    @property
    def surroundings(self) -> Surroundings | Gap[RunGap]:
        if self.row.surroundings is not None:
            return self.row.surroundings
        return self.row.surroundings_gap or Gap(RunGap.NOT_COLLECTED)


def session_view(row: Session, *, folder: Path, files: Files) -> SessionView:
    """Return the view of a session; one damaged receipt does not close the run."""
    damage, receipt = "", None
    try:
        receipt = read_receipt(folder, files=files)
    except ParitraceError as error:
        damage = error.message
    seen = seen_status(row, receipt=receipt, damage=damage, liveness=liveness(row.process))
    return SessionView(row=row, receipt=receipt, damage=damage, seen=seen)
