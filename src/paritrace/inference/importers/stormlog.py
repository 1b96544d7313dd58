"""Stormlog artifacts, schema 1 to 4, as events of a run (IN-4)."""

from collections import Counter
from pathlib import Path

from paritrace.errors import HostError
from paritrace.files import LOCAL
from paritrace.inference.context import ClockKind, CollectionMode, Context, ContextFacts, Provenance
from paritrace.inference.identities import derived_id
from paritrace.inference.importers.stormlog_rows import Legacy, StormlogRows
from paritrace.inference.importing import Account, Asked, Events, Imported, Reader, Scope, SourceKind, attachment_id_of
from paritrace.inference.lines import split
from paritrace.inference.records import Loss
from paritrace.inference.vocabulary import LossReason
from paritrace.runs.attaching import JSON_LINES, Reference
from paritrace.runs.envelope import AttachmentKind

NAME = "stormlog"
HEAD_BYTES = 1 << 16
LIMITS = (
    "attachments of its envelope stay there: an activity's trace is named in its metadata",
    "rows of schema 1 are counted and not read: they say nothing of iterations or device work",
)


def recognises(path: Path) -> bool:
    """Say whether a file begins with a row of Stormlog."""
    try:
        head = b"".join(LOCAL.iter_chunks(path, length=HEAD_BYTES))
    except HostError:
        return False
    first = head.split(b"\n", 1)[0]
    return b'"event_type"' in first and b'"infer.' in first


def open_artifact(asked: Asked) -> Imported:
    """Open an artifact; a line that is no row becomes a loss, and the next one is read."""
    attachment_id = attachment_id_of(NAME, asked.path)
    reference = Reference(
        kind=AttachmentKind.OTHER,
        title=asked.path.name,
        path=str(asked.path.resolve()),
        media_type=JSON_LINES,
        attachment_id=attachment_id,
        metadata={"reader": NAME},
    )
    return Imported((reference,), _events(asked, attachment_id))


def _events(asked: Asked, attachment_id: str) -> Events:
    rows, counts, complete = StormlogRows(asked.scope), Counter[str](), True
    for number, offset, data, ended in split(LOCAL.iter_chunks(asked.path)):
        if not data.strip():
            continue
        try:
            found = rows.read(data)
        except (ValueError, TypeError, RecursionError) as error:  # msgspec's errors are ValueErrors
            complete = False
            counts["lines_not_read"] += 1
            reason = LossReason.INVALID if ended else LossReason.TRUNCATED
            yield _loss(asked.scope, attachment_id, place=(number, offset, len(data)), reason=reason, why=str(error))
            continue
        if isinstance(found, Legacy):
            counts[f"not_imported:{found.type}"] += 1
        elif found is not None:
            counts[str(found.__struct_config__.tag)] += 1
            yield found
    return Account(complete=complete, counts=dict(sorted(counts.items())), limits=LIMITS)


def _loss(scope: Scope, attachment_id: str, *, place: tuple[int, int, int], reason: LossReason, why: str) -> Loss:
    number, offset, length = place
    facts = ContextFacts(
        run_id=scope.run_id,
        session_id=scope.session_id,
        producer_id=NAME,
        source=NAME,
        clock_domain=f"{attachment_id}/clock",
        clock_kind=ClockKind.WALL,
        collection_mode=CollectionMode.IMPORTED,
        provenance=Provenance.OBSERVED,
    )
    return Loss(
        context=Context(facts),
        event_id=derived_id("loss", attachment_id, number, offset, length),
        source=attachment_id,
        what="lines",
        reason=reason,
        count=1,
        first_byte=offset,
        num_bytes=length,
        metadata={"line": number, "why": why[:200]},
    )


STORMLOG = Reader(
    name=NAME,
    kind=SourceKind.STORMLOG,
    reads="inference artifacts of Stormlog, schema 1 to 4",
    recognises=recognises,
    open=open_artifact,
)
