"""Going on with an artifact whose writer was killed: torn bytes are kept, noted as lost, and passed over (IN-6)."""

from pathlib import Path

from msgspec import Struct

from paritrace.evidence.digests import sha256_hex
from paritrace.inference.appending import DEFAULTS, AppendOptions, own_context
from paritrace.inference.artifact import ARTIFACT_NAME, Events, Place, head_of, place_of
from paritrace.inference.committing import Asked, Machine, commit, writing
from paritrace.inference.context import Context
from paritrace.inference.enveloping import SessionFacts, envelope_path
from paritrace.inference.gathering import Gathering
from paritrace.inference.identities import derived_id
from paritrace.inference.lines import Line
from paritrace.inference.records import Loss
from paritrace.inference.result import VERSION, KeptBytes, RecoverReport
from paritrace.inference.sources import source_of
from paritrace.inference.vocabulary import LossReason
from paritrace.process.identity import own_identity
from paritrace.runs.attaching import copy_row
from paritrace.runs.envelope import ATTACHMENTS_FOLDER, Attachment, AttachmentKind
from paritrace.runs.intent_records import Lost, Recovery
from paritrace.runs.intents import INTENT_NAME

RECOVER_FORMAT = "paritrace-infer-recover"
BYTES = "application/octet-stream"


class _Torn(Struct, frozen=True):
    """Bytes that are no event: of a line without an end, or of one that cannot be read."""

    line: Line
    reason: LossReason
    row: Attachment


def recover(path: Path, *, options: AppendOptions = DEFAULTS) -> RecoverReport:
    """Keep what is no event as attachments, note each loss, and let the artifact be read and appended to again.

    No byte of the artifact is changed: its index says which bytes readers pass over. Doing it again does nothing.

    Raises:
        EvidenceError: Refused: `no_artifact`, `not_an_artifact`, `writer_lives`, `changed_meanwhile`, those of the
            envelope.
        HostError: Refused; Failed where the next opener finishes it.
    """
    files, process = options.files, own_identity()
    place = place_of(path)
    facts = head_of(place, files=files).context.facts
    envelope = envelope_path(place, given=options.envelope, files=files)
    with writing(place, envelope, Machine(process, files, options.clock)) as recovered:
        size = files.size(place.path)
        torn = [_torn(line) for line in Events(place, files=files).lines() if line.found is None]
    for one in torn:
        files.replace(envelope.parent / ATTACHMENTS_FOLDER / sha256_hex(one.line.data), one.line.data)
    gathering = Gathering(run_id=facts.run_id, session_id=facts.session_id)
    context = own_context(facts.run_id, facts.session_id, process)
    gathering.take_all((_loss(one, place, context=context) for one in torn), of="paritrace infer recover")
    asked = Asked(
        run_id=facts.run_id,
        session=SessionFacts(session_id=facts.session_id),
        first_session=facts.session_id,
        envelope=envelope,
        gatherings=(gathering,),
        rows=tuple(one.row for one in torn),
        given_up=tuple(Lost(one.line.offset, len(one.line.data)) for one in torn),
        size_when_read=size,
    )
    commit(place, asked, Machine(process, files, options.clock))
    return RecoverReport(
        format=RECOVER_FORMAT,
        version=VERSION,
        artifact=source_of(place, facts.run_id, files=files),
        recovered=recovered.value,
        kept=tuple(_told(one) for one in torn),
    )


def repair(path: Path, *, options: AppendOptions = DEFAULTS) -> Recovery:
    """Finish or drop what a killed append left, and say which; without one nothing is looked at or locked.

    Raises:
        EvidenceError: Refused: `writer_lives`, `intent_conflict`.
        HostError: Refused: `lock_timeout`, what the disk says.
    """
    place = place_of(path)
    if not options.files.exists(place.folder / INTENT_NAME):
        return Recovery.NOTHING
    envelope = envelope_path(place, given=options.envelope, files=options.files)
    with writing(place, envelope, Machine(own_identity(), options.files, options.clock)) as recovered:
        return recovered


def _torn(line: Line) -> _Torn:
    reason = LossReason.INVALID if line.ended else LossReason.TORN_TAIL
    title = f"bytes {line.offset} to {line.offset + len(line.data)} of {ARTIFACT_NAME}, which are no event"
    return _Torn(line, reason, copy_row(AttachmentKind.OTHER, title, line.data, media_type=BYTES))


def _loss(one: _Torn, place: Place, *, context: Context) -> Loss:
    made_id = derived_id("loss", place.name, one.line.offset, sha256_hex(one.line.data))
    return Loss(
        context=context,
        event_id=made_id,
        source=one.row.attachment_id,
        what="bytes of the artifact",
        reason=one.reason,
        count=len(one.line.data),
        first_byte=one.line.offset,
        num_bytes=len(one.line.data),
        metadata={"line": one.line.number},
    )


def _told(one: _Torn) -> KeptBytes:
    return KeptBytes(
        first_byte=one.line.offset,
        num_bytes=len(one.line.data),
        reason=one.reason,
        attachment_id=one.row.attachment_id,
        sha256=sha256_hex(one.line.data),
    )
