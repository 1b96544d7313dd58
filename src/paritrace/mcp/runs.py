"""The tools about one run: what it holds, whether it is intact, whether it holds against itself (AU-12)."""

from collections import Counter

from msgspec import Struct

from paritrace.compare.checks import check
from paritrace.compare.checks_result import Invariant, Outcome
from paritrace.evidence.gaps import Gap
from paritrace.mcp.places import Places
from paritrace.mcp.questions import AskRun
from paritrace.mcp.telling import Listing, listed, listing, numbers
from paritrace.runs.attendance import in_words
from paritrace.runs.showing import RunSummary, SessionSummary, summarise
from paritrace.runs.verify import Finding, Item
from paritrace.runs.verify import verify as verify_run

FACTS = 3  # of one invariant: more of them are in `paritrace check --json`


class Steps(Struct, frozen=True):
    """Steps seen; `first` and `last` are null without any."""

    count: int
    first: int | None
    last: int | None


class SessionTold(Struct, frozen=True):
    """One process of a run. `calls` is null where its journal cannot be read; `trouble` says why."""

    session_id: str
    rank: int
    incarnation: int
    status: str
    steps: Steps
    calls: int | None
    losses: int
    observed: int  # records of calls, details and states
    expected: int | None  # null: the session left no receipt
    complete: bool
    gaps: Listing[str]
    not_captured: Listing[str]
    remarks: Listing[str]
    mismatches: Listing[str]
    trouble: str


class RunTold(Struct, frozen=True):
    """A run. `counts`: sessions, those of each status, attachments of each kind; `ranks`: which left no evidence."""

    run_id: str
    path: str
    digest: str
    title: str
    created_at: str
    counts: dict[str, int]
    ranks: Listing[str]
    sessions: Listing[SessionTold]
    records: Listing[str]  # how what was run came to its end
    first_stop: str  # of several ranks that did not all end well: which stopped first, as far as that is known
    tags: Listing[str]
    metadata: Listing[str]


class Verified(Struct, frozen=True):
    """`counts` by finding; `items` that are not intact first. `not_covered`: what a verification cannot see."""

    run_id: str
    digest: str
    verdict: Finding
    counts: dict[str, int]
    items: Listing[Item]
    not_covered: Listing[str]


class InvariantTold(Struct, frozen=True):
    """One invariant; rank and step are -1 where it speaks of all of them."""

    id: str
    status: Outcome
    rank: int
    step: int
    name: str
    facts: Listing[str]
    reason: str
    place: str


class CheckTold(Struct, frozen=True):
    """A run against itself. `counts` by outcome; `invariants` that fail first, then those that could not be checked."""

    run_id: str
    digest: str
    counts: dict[str, int]
    invariants: Listing[InvariantTold]
    limits: Listing[str]


def describe_run(places: Places, asked: AskRun, /) -> RunTold:
    with places.run(asked.run) as run:
        found = summarise(run, files=places.files)
    envelope = found.envelope
    return RunTold(
        run_id=envelope.run_id,
        path=found.path,
        digest=found.digest,
        title=envelope.title or "",
        created_at=envelope.created_at,
        counts=_counts(found),
        ranks=listing([words for one in found.ranks for words in in_words(one)]),
        sessions=listed(found.sessions, _session),
        records=listing([f"{one.name}: {one.words}" for one in found.records]),
        first_stop="" if found.death is None else found.death.first,
        tags=listing(envelope.tags),
        metadata=listing([f"{name}={value}" for name, value in envelope.metadata.items()]),
    )


def verify(places: Places, asked: AskRun, /) -> Verified:
    with places.run(asked.run) as run:
        found = verify_run(run, files=places.files)
    order = (Finding.CHANGED, Finding.MISSING, Finding.NOT_CHECKED, Finding.INTACT)
    return Verified(
        run_id=found.run_id,
        digest=found.digest,
        verdict=found.verdict,
        counts=found.counts,
        items=listing(sorted(found.items, key=lambda item: order.index(item.status))),
        not_covered=listing(found.not_covered),
    )


def check_run(places: Places, asked: AskRun, /) -> CheckTold:
    with places.run(asked.run) as run:
        found = check(run)
    order = (Outcome.FAIL, Outcome.NOT_CHECKABLE, Outcome.PASS, Outcome.NOT_APPLICABLE)
    return CheckTold(
        run_id=found.run.run_id,
        digest=found.run.digest,
        counts=found.counts,
        invariants=listed(sorted(found.invariants, key=lambda one: order.index(one.status)), _invariant),
        limits=listing(found.limits),
    )


def _counts(found: RunSummary) -> dict[str, int]:
    statuses = Counter(f"sessions_{one.status}" for one in found.sessions)
    kinds = Counter(f"attachments_{one.kind.value}" for one in found.envelope.attachments)
    known = [one.account.calls for one in found.sessions if one.account is not None]
    return {
        "sessions": len(found.sessions),
        **dict(sorted(statuses.items())),
        "sessions_readable": len(known),
        "calls_in_readable_sessions": sum(known),
        "attachments": len(found.envelope.attachments),
        **dict(sorted(kinds.items())),
    }


def steps_of(steps: tuple[int, ...], /) -> Steps:
    return Steps(len(steps), min(steps, default=None), max(steps, default=None))


def _session(one: SessionSummary) -> SessionTold:
    return SessionTold(
        session_id=one.session_id,
        rank=one.rank,
        incarnation=one.incarnation,
        status=one.status_words,
        steps=steps_of(one.steps),
        calls=None if one.account is None else one.account.calls,
        losses=len(one.losses) + one.losses_left_out,
        observed=one.coverage.observed,
        expected=None if isinstance(one.coverage.expected, Gap) else one.coverage.expected,
        complete=one.coverage.complete,
        gaps=numbers(one.coverage.gaps),
        not_captured=listing(one.not_captured),
        remarks=listing(one.remarks),
        mismatches=listing(one.mismatches),
        trouble=one.trouble,
    )


def _invariant(one: Invariant) -> InvariantTold:
    facts, evidence = one.evidence.facts, one.evidence
    return InvariantTold(
        id=one.id,
        status=one.status,
        rank=one.rank,
        step=one.step,
        name=one.name,
        facts=listing(facts[:FACTS], total=len(facts)),
        reason=evidence.reason,
        place=f"{evidence.file}:{evidence.line}" if evidence.file else evidence.module,
    )
