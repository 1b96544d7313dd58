"""What readers call a session's status: recorded facts and the life of its process, no guess at a cause (EV-17)."""

from typing import assert_never

from msgspec import Struct

from paritrace.process.identity import Life, Liveness
from paritrace.runs.envelope import ReceiptDocument, Role, Session, SessionStatus

RECORDED = "recorded"


class SeenStatus(Struct, frozen=True):
    """`words` is what people read; it never names a cause that nobody recorded (P2).

    A program that was only recorded has not `completed` by that: its record says how it ended.
    """

    status: SessionStatus
    words: str


def seen_status(row: Session, *, receipt: ReceiptDocument | None, damage: str, liveness: Liveness) -> SeenStatus:
    """Return the status of a session as a reader may state it; `damage`: why its receipt cannot be read."""
    match row.status:
        case SessionStatus.COMPLETED:
            if row.role is Role.INFERENCE_CAPTURE:
                return SeenStatus(
                    row.status, RECORDED
                )  # its evidence is appended from outside, and never ends by itself
            if receipt is None:
                what = "cannot be read" if damage else "is missing"
                return SeenStatus(SessionStatus.INCOMPLETE, f"incomplete; its receipt {what}")
            return SeenStatus(row.status, RECORDED if row.role is Role.RECORD else "completed")
        case SessionStatus.INTERRUPTED | SessionStatus.INCOMPLETE:
            return SeenStatus(row.status, row.status.value)
        case SessionStatus.RUNNING:
            return _of_running(receipt, liveness)
        case _:
            assert_never(row.status)


def _of_running(receipt: ReceiptDocument | None, liveness: Liveness) -> SeenStatus:
    match liveness.life:
        case Life.ALIVE:
            return SeenStatus(SessionStatus.RUNNING, "running")
        case Life.GONE:
            words = "interrupted; cause unknown"
            if receipt is not None:
                words += f", after its receipt was written ({receipt.status.value})"
            return SeenStatus(SessionStatus.INTERRUPTED, words)
        case Life.NOT_CHECKABLE:
            return SeenStatus(SessionStatus.RUNNING, f"running when last written; not checkable here: {liveness.why}")
        case _:
            assert_never(liveness.life)
