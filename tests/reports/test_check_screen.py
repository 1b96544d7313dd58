"""The screen of check stays within 34 lines of 100 columns for any record, and shows failures first (CP-25, SU-7)."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from paritrace.compare.checks_result import FORMAT, VERSION, Checked, Evidence, Invariant, Outcome, RankCoverage
from paritrace.compare.result import RunRef
from paritrace.reports.check_screen import FAILS, check_screen
from paritrace.reports.check_story import in_order
from tests.reports.test_first_screen import assert_within_bounds

COVERAGE = RankCoverage(
    rank=0,
    session_id="rank-0",
    status="completed",
    steps_seen=(0, 1),
    expected_steps=2,
    levels=("digest", "module"),
    calls=1000,
    states=12,
    gaps={},
    losses=0,
    bytes_lost=0,
    has_receipt=True,
    not_captured=(),
)


def invariant(identity: str, status: Outcome, *, evidence: Evidence | None = None) -> Invariant:
    return Invariant(id=identity, status=status, rank=0, step=-1, name="it holds", evidence=evidence or Evidence())


def checked(*invariants: Invariant) -> Checked:
    counts = {outcome.value: sum(one.status is outcome for one in invariants) for outcome in Outcome}
    return Checked(FORMAT, VERSION, RunRef("a", "0" * 64, "A"), invariants, {"rank-0": COVERAGE}, counts, ())


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.builds(Checked, ends=st.none()))
def test_su7_any_check_stays_within_bounds(found: Checked) -> None:
    assert_within_bounds(check_screen(found))


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(sorted(FAILS)), st.sampled_from(Outcome)), max_size=60),
    st.text(max_size=300),
    st.integers(1, 20),
)
def test_su7_crowded_checks_stay_within_bounds_and_name_the_first_failure(
    statuses: list[tuple[str, Outcome]], text: str, sessions: int
) -> None:
    evidence = Evidence(
        facts=(text, text, text), names=(text,) * 9, total=99, file=text or "f", line=3, record_ids=(7,)
    )
    one = checked(*(invariant(identity, status, evidence=evidence) for identity, status in statuses))
    many = replace(one, coverage={f"rank-{rank}": replace(COVERAGE, rank=rank) for rank in range(sessions)})
    screen = check_screen(many)
    assert_within_bounds(screen)
    failed = in_order(one for one in many.invariants if one.status is Outcome.FAIL)
    if failed:
        assert FAILS[failed[0].id] in " ".join(screen.split())
        assert "FAIL" in screen


def test_what_could_not_be_checked_is_listed_by_reason_once() -> None:
    why = Evidence(reason="one rank")
    screen = check_screen(
        checked(
            invariant("replicas.rng", Outcome.NOT_CHECKABLE, evidence=why),
            invariant("batches.across_ranks", Outcome.NOT_CHECKABLE, evidence=why),
        )
    )
    assert "one rank: replicas.rng, batches.across_ranks" in screen
    assert screen.startswith("[check]     Nothing could be checked.")
