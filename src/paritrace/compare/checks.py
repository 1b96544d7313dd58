"""check RUN: holds one run against itself (CP-25)."""

from collections import Counter
from collections.abc import Iterator

from paritrace.compare.checks_across import Across, Presence, presence_of
from paritrace.compare.checks_ends import ends_of
from paritrace.compare.checks_facts import SessionFacts
from paritrace.compare.checks_heads import read_head
from paritrace.compare.checks_result import FORMAT, VERSION, Checked, Invariant, Outcome, RankCoverage
from paritrace.compare.checks_rules_collectives import collective_invariants
from paritrace.compare.checks_rules_coverage import attendance_invariants, coverage_invariants
from paritrace.compare.checks_rules_inputs import input_invariants
from paritrace.compare.checks_rules_parameters import not_checkable, parameter_invariants
from paritrace.compare.checks_rules_presence import alone_invariants
from paritrace.compare.checks_rules_replicas import replica_invariants
from paritrace.compare.checks_rules_values import value_invariants
from paritrace.compare.result import RunRef
from paritrace.evidence.journal import Account
from paritrace.runs.envelope import Role
from paritrace.runs.reading import Run
from paritrace.runs.views import SessionView

LIMITS = (
    "`pass` speaks of what was recorded: a call, step or rank that was not recorded was not checked",
    "states are compared by elements-u64, which does not see an exchange of elements",
    "agreeing fingerprints do not prove that tensors agree",
    "a failed invariant names a fact, not its cause; some workloads mean it so",
)
NOT_CAPTURED = "the program was recorded, not captured: nothing is known of what it computed"
EXPECTED_STEPS = "expected_steps"  # of the envelope's metadata: `A:B`, written only when the user declared them (CA-24)


def check(run: Run, /) -> Checked:
    """Returns every invariant with its outcome and evidence, session by session.

    Raises:
        EvidenceError: Refused: a journal of another format or version.
    """
    invariants: list[Invariant] = []
    coverage: dict[str, RankCoverage] = {}
    presence = presence_of(run.sessions, run.attendance)
    across = _across(run, presence)
    for session in sorted(run.sessions, key=lambda one: (one.incarnation, one.rank)):
        facts = SessionFacts()
        journal = run.journal(session.session_id)
        if across is not None and session.incarnation == presence.incarnation:
            facts.see_all(across.watch(journal, rank=session.rank, has_receipt=session.receipt is not None))
        else:
            facts.see_all(journal)
        seen = _coverage(run, session, facts, journal.account)
        coverage[session.session_id] = seen
        found = [*parameter_invariants(facts, rank=session.rank), *value_invariants(facts, rank=session.rank)]
        found += coverage_invariants(seen)
        if session.row.role is Role.RECORD:
            found = [not_checkable(one.id, one.name, NOT_CAPTURED, rank=session.rank) for one in found]
        invariants += found
    invariants += alone_invariants(presence) if across is None else _rank_invariants(across)
    invariants += attendance_invariants(run.attendance)
    counts = Counter(invariant.status.value for invariant in invariants)
    return Checked(
        format=FORMAT,
        version=VERSION,
        run=RunRef(run_id=run.run_id, digest=run.digest, path=str(run.path)),
        invariants=tuple(invariants),
        coverage=coverage,
        counts={outcome.value: counts[outcome.value] for outcome in Outcome},
        limits=LIMITS,
        ranks=run.attendance,
        ends=ends_of(run),
    )


def _across(run: Run, presence: Presence) -> Across | None:
    """Returns what gathers facts across ranks, with the head of each journal read; None when one rank is there."""
    if len(presence.ranks) < 2:
        return None
    sessions = [session for session in run.sessions if session.incarnation == presence.incarnation]
    return Across((read_head(run.journal(one.session_id), rank=one.rank) for one in sessions), presence)


def _rank_invariants(across: Across) -> Iterator[Invariant]:
    yield from replica_invariants(across)
    yield from input_invariants(across)
    yield from collective_invariants(across)


def _coverage(run: Run, session: SessionView, facts: SessionFacts, account: Account) -> RankCoverage:
    return RankCoverage(
        rank=session.rank,
        session_id=session.session_id,
        status=session.seen.words,
        steps_seen=tuple(mark.step for mark in facts.steps),
        expected_steps=_declared(run.envelope.metadata.get(EXPECTED_STEPS)),
        levels=tuple(sorted(facts.levels)),
        calls=account.calls,
        states=account.states,
        gaps=dict(_gaps(facts, session)),
        losses=len(facts.lost),
        bytes_lost=account.torn_bytes + account.foreign_bytes,
        has_receipt=session.receipt is not None,
        not_captured=facts.not_captured,
        remarks=facts.remarks.lines(),
    )


def _gaps(facts: SessionFacts, session: SessionView) -> Counter[str]:
    """The receipt counts every gap; a session without one has what its marks say."""
    return Counter(session.receipt.counts.gaps) if session.receipt is not None else facts.gaps


def _declared(text: str | None) -> int | None:
    first, colon, last = (text or "").partition(":")
    return int(last) - int(first) if colon and first.isdigit() and last.isdigit() else None
