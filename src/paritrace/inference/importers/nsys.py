"""SQLite exports of Nsight Systems, and its reports, which are registered alone (IN-11)."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from paritrace.files import LOCAL
from paritrace.inference.identities import derived_id
from paritrace.inference.importers.nsys_account import NsysAccount
from paritrace.inference.importers.nsys_contexts import NsysContexts
from paritrace.inference.importers.nsys_diagnostics import diagnosed
from paritrace.inference.importers.nsys_reading import Reading
from paritrace.inference.importers.nsys_tables import MAGIC, Export, open_export
from paritrace.inference.importing import Account, Asked, Events, Imported, Reader, SourceKind, attachment_id_of
from paritrace.inference.records import Loss
from paritrace.inference.vocabulary import LossReason, LossStatus
from paritrace.runs.attaching import Reference
from paritrace.runs.envelope import AttachmentKind

RANGE_OPTION, HOST_OPTION = "range", "host"
REPORT_SUFFIX = ".nsys-rep"
MEDIA_TYPE = "application/vnd.sqlite3"
_EXPORT_FIRST = "a report is registered, not read: export it with `nsys export --type sqlite` and import that"


def recognises(path: Path, /) -> bool:
    """Say whether a file is a database by its first bytes, or a report by its name."""
    head = b"".join(LOCAL.iter_chunks(path, length=len(MAGIC)))
    return head == MAGIC or path.name.lower().endswith(REPORT_SUFFIX)


def open_nsys(asked: Asked, /) -> Imported:
    """Open an export for reading alone; a report is registered and gives one loss.

    Raises:
        EvidenceError: Refused, `bad_export`.
    """
    attachment_id = attachment_id_of("nsys", asked.path)
    reference = Reference(
        kind=AttachmentKind.PROFILER_TRACE,
        title=asked.path.name,
        path=str(asked.path.resolve()),
        media_type=MEDIA_TYPE,
        attachment_id=attachment_id,
    )
    contexts = NsysContexts(asked.scope, attachment_id=attachment_id, host=asked.options.get(HOST_OPTION))
    if asked.path.name.lower().endswith(REPORT_SUFFIX):
        return Imported(attachments=(reference,), events=_registered(contexts))
    export = open_export(asked.path)
    return Imported(attachments=(reference,), events=_events(export, contexts, pattern=asked.options.get(RANGE_OPTION)))


def _registered(contexts: NsysContexts) -> Events:
    yield _loss(contexts, LossReason.UNSUPPORTED, _EXPORT_FIRST)
    return Account(complete=False, limits=(_EXPORT_FIRST,))


def _events(export: Export, contexts: NsysContexts, *, pattern: str | None) -> Events:
    account = NsysAccount()
    reading = Reading(export, contexts, account=account, pattern=pattern)
    try:
        yield from reading.events()
        account.diagnosed = diagnosed(reading.diagnostics())
        yield from _diagnosed_losses(contexts, account)
    except sqlite3.Error as error:
        account.stopped = f"the database is damaged: {error}"
        yield _loss(contexts, LossReason.INVALID, account.stopped)
    finally:
        export.close()
    return account.account()


def _diagnosed_losses(contexts: NsysContexts, account: NsysAccount) -> Iterator[Loss]:
    if account.diagnosed is None:
        return
    if not account.diagnosed.losses:
        yield Loss(
            context=contexts.of(None),
            event_id=derived_id("loss", contexts.attachment_id, "not reported"),
            source=contexts.attachment_id,
            what="events",
            reason=LossReason.UNKNOWN,
            status=LossStatus.NOT_REPORTED,
        )
    for number, told in enumerate(account.diagnosed.losses):
        yield Loss(
            context=contexts.of(None),
            event_id=derived_id("loss", contexts.attachment_id, told.what, number),
            source=contexts.attachment_id,
            what=told.what,
            reason=told.reason,
            status=told.status,
            count=told.count,
        )


def _loss(contexts: NsysContexts, reason: LossReason, told: str) -> Loss:
    return Loss(
        context=contexts.of(None),
        event_id=derived_id("loss", contexts.attachment_id, reason.value),
        source=contexts.attachment_id,
        what="the rest of the trace",
        reason=reason,
        metadata={"told": told},
    )


NSYS = Reader(
    name="nsys",
    kind=SourceKind.TRACE,
    reads="an export of Nsight Systems (SQLite); a report (.nsys-rep) is registered alone",
    recognises=recognises,
    open=open_nsys,
    options=(
        (RANGE_OPTION, "NVTX ranges named like this mark iterations too, as in file names (step-*)"),
        (HOST_OPTION, "the host that was traced"),
    ),
)
