"""The one way into an artifact: locked, held against what is there, and changed with its envelope (IN-5, EV-11)."""

import os
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from paritrace.clock import SYSTEM, Clock
from paritrace.errors import EvidenceError, HostError
from paritrace.evidence import codec
from paritrace.evidence.digests import sha256_hex
from paritrace.evidence.ids import ProcessIdentity
from paritrace.files import LOCAL, Files
from paritrace.inference.artifact import Place, require_no_writer
from paritrace.inference.choosing import Chosen, choose
from paritrace.inference.drawing import Marks, marks_of
from paritrace.inference.enveloping import (
    SessionFacts,
    artifact_row,
    new_envelope,
    unregistered,
    with_artifact,
    with_session,
)
from paritrace.inference.gathering import Gathering, Kept
from paritrace.inference.known import Known, change_of, known_of
from paritrace.inference.lines import encode_definition
from paritrace.runs.attaching import Reference, reference_row
from paritrace.runs.committed import Added, Behind, extended, index_name
from paritrace.runs.documents import read_own_envelope
from paritrace.runs.envelope import LOCK_NAME, Attachment, Envelope
from paritrace.runs.intent_records import Lost, Recovery
from paritrace.runs.intents import MoreContent, NewContent, change_together, changing
from paritrace.runs.rows import with_attachments


class Machine(Struct, frozen=True):
    """Who writes, and through what."""

    process: ProcessIdentity
    files: Files = LOCAL
    clock: Clock = SYSTEM


class Asked(Struct, frozen=True, kw_only=True):
    """One change of an artifact.

    `first_session`: the session whose id the artifact's own attachment bears. `given_up`: bytes that are no events,
    of a file that was `size_when_read` bytes long; `rows`: attachments that are copied already. `marks`: of files that
    events were read from, which are to be the bytes that are registered.
    """

    run_id: str
    session: SessionFacts
    first_session: str
    envelope: Path
    gatherings: tuple[Gathering, ...]
    attachments: tuple[Reference, ...] = ()
    rows: tuple[Attachment, ...] = ()
    given_up: tuple[Lost, ...] = ()
    size_when_read: int | None = None
    marks: Marks = {}


class Committed(Struct, frozen=True, kw_only=True):
    """What an append did. `recovered`: what it found of an earlier one that was killed."""

    written: dict[str, int]
    num_written: int
    already_present: int
    num_bytes: int
    attachments: tuple[str, ...]
    recovered: Recovery


@contextmanager
def writing(place: Place, envelope: Path, machine: Machine) -> Generator[Recovery, None, None]:
    """Hold an artifact against appends, sessions of its run and live writers; yields what was recovered.

    Raises:
        EvidenceError: Refused: `writer_lives`, `intent_conflict`.
        HostError: Refused: `lock_timeout`, `lock_of_another_host`, what the disk says.
    """
    files, clock = machine.files, machine.clock
    files.mkdir(envelope.parent)
    with (
        changing(place.folder, machine.process, files=files, clock=clock) as recovered,
        files.locked(envelope.parent / LOCK_NAME, clock=clock),
        _without_writer(place, machine),
    ):
        yield recovered


def commit(place: Place, asked: Asked, machine: Machine) -> Committed:
    """Append what is new of the gathered events, register attachments and session; all of it or nothing.

    Raises:
        EvidenceError: Refused, nothing changed: `event_conflict`, `attachment_unknown`, `other_run`, `torn_tail`,
            `invalid_line`, `session_conflict`, `attachment_conflict`, `writer_lives`, and those of the envelope.
        HostError: Refused; Failed where the next opener finishes it.
    """
    with writing(place, asked.envelope, machine) as recovered:
        _require_size(place, asked.size_when_read, machine.files)
        known = known_of(place, given_up=asked.given_up, files=machine.files)
        chosen = choose(asked.gatherings, known=known.rows)
        before = read_own_envelope(asked.envelope.parent, files=machine.files)
        after = _enveloped(before, asked, machine)
        if chosen.written or known.stored is None or after != before:
            num_bytes = _change(place, asked, chosen, known=known, after=after, machine=machine)
        else:
            num_bytes = known.num_bytes
    return Committed(
        written=chosen.written,
        num_written=sum(chosen.written.values()),
        already_present=chosen.already_present,
        num_bytes=num_bytes,
        attachments=tuple(row.attachment_id for row in after.attachments),
        recovered=recovered,
    )


def _change(place: Place, asked: Asked, chosen: Chosen, *, known: Known, after: Envelope, machine: Machine) -> int:
    files, run_dir = machine.files, asked.envelope.parent
    kept = Kept()
    kept.add(b"".join(map(encode_definition, chosen.contexts)))
    for gathering, mask in zip(asked.gatherings, chosen.keep, strict=True):
        gathering.copy(mask, to=kept)
    lines = Added(kept.num_bytes, kept.sha256, kept.chunks)
    index, more = extended(place.folder, place.name, lines, behind=Behind.ADOPTED, files=files)
    index = replace(index, losses=tuple(sorted({*index.losses, *asked.given_up})))
    row = artifact_row(place, index, session_id=asked.first_session, run_dir=run_dir)
    document = codec.encode_document(with_artifact(after, row))
    changes: list[NewContent | MoreContent] = [
        more,
        _new(place.folder / index_name(place.name), codec.encode_document(index), place, files),
        change_of(known, place, chosen.identities, through=index.num_bytes, files=files),
        _new(asked.envelope, document, place, files),
    ]
    change_together(place.folder, changes, files=files)
    return index.num_bytes


def _new(path: Path, data: bytes, place: Place, files: Files) -> NewContent:
    found = files.read_if_present(path)
    name = Path(os.path.relpath(path, place.folder)).as_posix()
    return NewContent(name, None if found is None else sha256_hex(found), data)


def _enveloped(before: Envelope | None, asked: Asked, machine: Machine) -> Envelope:
    """Return the envelope with session and attachments; the artifact's own row follows once its length is known."""
    run_dir = asked.envelope.parent
    envelope = before or new_envelope(asked.run_id, process=machine.process, clock=machine.clock)
    if envelope.run_id != asked.run_id:
        raise EvidenceError(
            f"{asked.envelope} is of run {envelope.run_id}, not of {asked.run_id}",
            code="other_run",
            fix="name the envelope of this run, or the run of this envelope; nothing was appended",
        )
    envelope = with_session(envelope, asked.session, process=machine.process, clock=machine.clock)
    rows = [
        reference_row(one, session_id=asked.session.session_id, run_dir=run_dir, files=machine.files)
        for one in asked.attachments
    ]
    _require_read(asked)
    envelope = with_attachments(envelope, (*rows, *asked.rows))
    named = {key: value for one in asked.gatherings for key, value in one.attachment_ids.items()}
    missing = unregistered(named, envelope)
    if missing:
        raise EvidenceError(
            f"event {named[missing[0]]} names the trace attachment {missing[0]}, which is not registered",
            code="attachment_unknown",
            fix="register the trace with the append that brings its events; nothing was appended",
        )
    return envelope


def _require_read(asked: Asked) -> None:
    """Refuse a file that was written since its events were read: its digest would be of other bytes than they are."""
    now = marks_of(asked.attachments)
    changed = sorted(path for path, mark in asked.marks.items() if now.get(path) != mark)
    if changed:
        raise EvidenceError(
            f"{changed[0]} was written while it was read",
            code="changed_while_read",
            fix="import a copy of it, or import it again once its writer has ended; nothing was appended",
        )


def _require_size(place: Place, expected: int | None, files: Files) -> None:
    if expected is not None and files.size(place.path) != expected:
        raise EvidenceError(
            f"{place.path} changed since it was read",
            code="changed_meanwhile",
            fix="repeat the command; nothing was changed",
        )


@contextmanager
def _without_writer(place: Place, machine: Machine) -> Generator[None, None, None]:
    with ExitStack() as stack:
        try:
            stack.enter_context(machine.files.locked(place.lease, clock=machine.clock, wait_seconds=0.0))
        except HostError as error:
            raise require_no_writer(error, place) from error
        yield
