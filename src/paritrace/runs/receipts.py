"""Counting again: what a journal holds against what its writer said it wrote (CA-13)."""

from collections.abc import Iterator

from paritrace.evidence.journal import Account
from paritrace.runs.envelope import ReceiptDocument, Session, SessionStatus


def mismatches(row: Session, receipt: ReceiptDocument | None, account: Account) -> tuple[str, ...]:
    """Return, in words, each count or fact in which journal, end mark and receipt disagree; empty if they agree.

    Records that were lost show as a loss besides; here they show as a count that is too low.
    """
    return (*_facts(row, account), *_end_mark(account), *_receipt(receipt, account))


def _facts(row: Session, account: Account) -> Iterator[str]:
    header = account.header
    if header is None:
        return
    for name, recorded, found in (
        ("session", row.session_id, header.session_id),
        ("rank", row.rank, header.rank),
        ("incarnation", row.incarnation, header.incarnation),
    ):
        if recorded != found:
            yield f"the journal says {name} {found}, the envelope {recorded}"


def _end_mark(account: Account) -> Iterator[str]:
    end = account.end
    if end is None:
        return
    lines = account.records - 1 - account.records_after_end
    if not account.losses and end.lines != lines:
        yield f"{lines} lines before the end mark, it says {end.lines}"
    if account.records_after_end:
        yield f"{account.records_after_end} records after the end mark"
    for name, written, found in (
        ("calls", end.calls, account.calls),
        ("details", end.details, account.details),
        ("states", end.states, account.states),
    ):
        if written != found:
            yield f"{found} {name}, the end mark says {written}"


def _receipt(receipt: ReceiptDocument | None, account: Account) -> Iterator[str]:
    """Compare with the receipt's counts, which are those of acknowledged writes.

    A capture that ended for lack of space says so; its last, cut off write may have brought whole lines to the disk.
    """
    if receipt is None:
        return
    counts = receipt.counts
    for name, written, found in (
        ("calls", counts.calls, account.calls),
        ("details", counts.details, account.details),
        ("states", counts.states, account.states),
    ):
        if found < written or (found > written and receipt.status is SessionStatus.COMPLETED):
            yield f"{found} {name}, the receipt says {written}"
