"""Appending to an artifact: by collectors, from an importer; and making one (IN-5, IN-20 to IN-23)."""

import secrets
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from paritrace.clock import SYSTEM, Clock
from paritrace.errors import EvidenceError
from paritrace.evidence.clocks import wall_domain
from paritrace.evidence.ids import ProcessIdentity, new_run_id
from paritrace.files import LOCAL, Files
from paritrace.inference.artifact import Place, head_of, place_of
from paritrace.inference.collecting import (
    DEADLINE_SECONDS,
    Asking,
    Collected,
    EngineAdapter,
    Told,
    TraceCollector,
    ask,
    drawn,
)
from paritrace.inference.committing import Asked, Committed, Machine, commit
from paritrace.inference.context import ClockKind, CollectionMode, Context, ContextFacts, Provenance
from paritrace.inference.enveloping import SessionFacts, envelope_path
from paritrace.inference.gathering import Gathering
from paritrace.inference.identities import derived_id
from paritrace.inference.importing import Account, Imported
from paritrace.inference.records import Artifact, Observation
from paritrace.inference.vocabulary import Component
from paritrace.process.identity import own_identity
from paritrace.runs.attaching import Reference
from paritrace.runs.documents import read_envelope

PRODUCER = "paritrace"
DEFAULT_SESSION = "inference"
ARTIFACT_KIND = "inference"
_RANDOM_BYTES = 10


class AppendOptions(Struct, frozen=True, kw_only=True):
    """How an append goes about it. `envelope` None: run.json of the artifact's run, or beside it (IN-22)."""

    envelope: Path | None = None
    keep_going: bool = False
    deadline_seconds: float = DEADLINE_SECONDS
    files: Files = LOCAL
    clock: Clock = SYSTEM


DEFAULTS = AppendOptions()


class Imports(Struct, frozen=True):
    """What an import did: the append, and the importer's account."""

    committed: Committed
    account: Account


def init(
    run_dir: Path, *, run_id: str | None = None, session: SessionFacts | None = None, options: AppendOptions = DEFAULTS
) -> Committed:
    """Make the artifact of a run, and the run's envelope where there is none.

    Args:
        run_id: default: that of the envelope, or a new one.
        session: default: a session `inference`.

    Raises:
        EvidenceError: Refused: `artifact_exists`, `other_run`, `session_conflict`, `foreign_folder`.
        RequestError: Refused, code `bad_id`.
        HostError: Refused; Failed where the next opener finishes it.
    """
    files = options.files
    files.mkdir(run_dir)
    place = place_of(run_dir)
    if files.exists(place.path):
        raise EvidenceError(
            f"{place.path} is there already",
            code="artifact_exists",
            fix="append to it, or name another run directory; nothing was changed",
        )
    facts = SessionFacts(session_id=DEFAULT_SESSION) if session is None else session
    process = own_identity()
    envelope = envelope_path(place, given=options.envelope, files=files)
    named = run_id or _recorded_run(envelope, files) or _fresh_run_id(options.clock)
    context = own_context(named, facts.session_id, process)
    gathering = Gathering(run_id=named, session_id=facts.session_id, ours=True)
    created_at_ns = options.clock.wall_ns()
    made_id = derived_id("artifact", named, facts.session_id, created_at_ns)
    gathering.take(
        Artifact(context=context, event_id=made_id, kind=ARTIFACT_KIND, created_at_ns=created_at_ns), of=PRODUCER
    )
    asked = Asked(
        run_id=named, session=facts, first_session=facts.session_id, envelope=envelope, gatherings=(gathering,)
    )
    return commit(place, asked, Machine(process, files, options.clock))


def append(
    artifact: Path,
    *,
    run_id: str,
    session: str | SessionFacts,
    engine_adapter: EngineAdapter | None = None,
    trace_collector: TraceCollector | None = None,
    options: AppendOptions = DEFAULTS,
) -> Committed:
    """Append what an engine adapter and a trace collector have of one session (IN-5).

    Everything is collected and checked before any byte changes; artifact and envelope change together or not at all.
    Appending the same again writes nothing and says `already_present`. Appends wait for each other, for at most a
    minute; a live streaming writer is not waited for.

    Args:
        artifact: the file, or the run directory that holds it.
        session: its id, or what is known of it.

    Raises:
        EvidenceError: Refused: `no_artifact`, `other_run`, `collector_failed`, `bad_event`, `event_conflict`,
            `attachment_unknown`, `attachment_conflict`, `session_conflict`, `torn_tail`, `invalid_line`,
            `writer_lives`, `intent_conflict`.
        HostError: Refused: `collector_timeout`, `lock_timeout`, `lock_of_another_host`, what the disk says; Failed
            where the change was promised and the next opener of the folder finishes it.
    """
    place, facts, first = _opened(artifact, run_id, session, options.files)
    process = own_identity()
    asking = Asking(own_context(run_id, facts.session_id, process), options.deadline_seconds, options.keep_going)
    told = [
        ask(Component.ENGINE_ADAPTER, engine_adapter, asking),
        ask(Component.TRACE_COLLECTOR, trace_collector, asking),
    ]
    asked = Asked(
        run_id=run_id,
        session=facts,
        first_session=first,
        envelope=envelope_path(place, given=options.envelope, files=options.files),
        gatherings=(*(one.gathering for one in told), _capabilities(told, asking)),
        attachments=tuple(row for one in told for row in one.attachments),
        marks={path: mark for one in told for path, mark in one.marks.items()},
    )
    return commit(place, asked, Machine(process, options.files, options.clock))


def append_import(
    artifact: Path,
    imported: Imported,
    *,
    component: str,
    run_id: str,
    session: str | SessionFacts,
    options: AppendOptions = DEFAULTS,
) -> Imports:
    """Append what an importer reads, and its account as the capability event of `component`; raises as `append`."""
    place, facts, first = _opened(artifact, run_id, session, options.files)
    process = own_identity()
    context = own_context(run_id, facts.session_id, process)
    gathering = Gathering(run_id=run_id, session_id=facts.session_id)
    told, account = drawn(imported, gathering, component=component, context=context)
    asked = Asked(
        run_id=run_id,
        session=facts,
        first_session=first,
        envelope=envelope_path(place, given=options.envelope, files=options.files),
        gatherings=(gathering, _capabilities([told], Asking(context))),
        attachments=imported.attachments,
        marks=told.marks,
    )
    return Imports(commit(place, asked, Machine(process, options.files, options.clock)), account)


class GivenEvents:
    """A collector of events that are there already: a file of them, a list."""

    def __init__(self, events: Iterable[Observation], *, attachments: tuple[Reference, ...] = ()) -> None:
        self._events = events
        self._attachments = attachments

    def collect(self, *, run_id: str, session_id: str) -> Collected:
        """Return the events."""
        return Collected(events=self._events, attachments=self._attachments)


def _opened(artifact: Path, run_id: str, session: str | SessionFacts, files: Files) -> tuple[Place, SessionFacts, str]:
    place = place_of(artifact)
    head = head_of(place, files=files)
    facts = SessionFacts(session_id=session) if isinstance(session, str) else session
    if head.context.facts.run_id != run_id:
        raise EvidenceError(
            f"{place.path} is of run {head.context.facts.run_id}, not of {run_id}",
            code="other_run",
            fix="name the run of this artifact, or the artifact of this run; nothing was appended",
        )
    return place, facts, head.context.facts.session_id


def _capabilities(told: Iterable[Told], asking: Asking) -> Gathering:
    gathering = Gathering(run_id=asking.context.facts.run_id, session_id=asking.context.facts.session_id)
    for one in told:
        gathering.take(one.capability, of=PRODUCER)
    return gathering


def own_context(run_id: str, session_id: str, process: ProcessIdentity) -> Context:
    """Return the context of what an append says itself; the same for every process of a host and boot (IN-20)."""
    return Context(
        ContextFacts(
            run_id=run_id,
            session_id=session_id,
            producer_id=PRODUCER,
            source="paritrace infer",
            clock_domain=wall_domain(process).name,
            clock_kind=ClockKind.WALL,
            collection_mode=CollectionMode.ACTIVE,
            provenance=Provenance.OBSERVED,
        )
    )


def _recorded_run(envelope: Path, files: Files) -> str | None:
    found = read_envelope(envelope.parent, files=files)
    return None if found is None else found.run_id


def _fresh_run_id(clock: Clock) -> str:
    return new_run_id(unix_ns=clock.wall_ns(), random=secrets.token_bytes(_RANDOM_BYTES))
