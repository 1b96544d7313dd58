"""Times of two clocks are compared through exactly one alignment or not at all (EV-4, EV-20, P2)."""

from hypothesis import given
from hypothesis import strategies as st

from paritrace.evidence.clocks import (
    Alignment,
    ClockDomain,
    ClockGap,
    DomainKind,
    Instant,
    Placed,
    duration_ns,
    monotonic_domain,
    place,
    stepped_back,
    wall_domain,
)
from paritrace.evidence.gaps import Gap, RunGap
from paritrace.evidence.ids import ProcessIdentity

A, B, C, D = (ClockDomain(DomainKind.TRACE, name) for name in "ABCD")
MONOTONIC = ClockDomain(DomainKind.MONOTONIC, "host/boot/monotonic_ns")
WALL = ClockDomain(DomainKind.WALL, "host/boot/unix_epoch_ns")


def aligned(source: ClockDomain, target: ClockDomain, offset: int, *, spread: int = 1, until: int = 1000) -> Alignment:
    return Alignment(source, target, offset, spread, 0, until)


def placed(domain: ClockDomain, ns: int, spread: int) -> Placed:
    return Placed(Instant(domain, ns), spread)


def reason(found: Placed | int | Gap[ClockGap]) -> ClockGap:
    assert isinstance(found, Gap)
    return found.gap


def test_one_domain_needs_no_alignment() -> None:
    assert place(Instant(A, 5), A, []) == placed(A, 5, 0)


def test_one_covering_alignment_is_used_in_both_directions() -> None:
    edge = aligned(A, B, 100, spread=7)
    assert place(Instant(A, 5), B, [edge]) == placed(B, 105, 7)
    assert place(Instant(B, 105), A, [edge]) == placed(A, 5, 7)


def test_outside_its_validity_an_alignment_says_nothing() -> None:
    edge = aligned(A, B, 100)
    assert reason(place(Instant(A, 1001), B, [edge])) is ClockGap.OUTSIDE_VALIDITY
    assert reason(place(Instant(B, 1101), A, [edge])) is ClockGap.OUTSIDE_VALIDITY
    assert place(Instant(B, 1100), A, [edge]) == placed(A, 1000, 1)


def test_two_covering_alignments_are_one_too_many() -> None:
    edges = [aligned(A, B, 100), aligned(A, B, 101)]
    assert reason(place(Instant(A, 5), B, edges)) is ClockGap.SEVERAL_ALIGNMENTS


def test_of_two_alignments_the_one_that_covers_the_time_counts() -> None:
    edges = [aligned(A, B, 100, until=10), Alignment(A, B, 200, 3, 11, 20)]
    assert place(Instant(A, 15), B, edges) == placed(B, 215, 3)


def test_a_unique_path_adds_its_uncertainties() -> None:
    edges = [aligned(A, B, 100, spread=2), aligned(C, B, 10, spread=3), aligned(C, D, 1, spread=5)]
    assert place(Instant(A, 5), D, edges) == placed(D, 96, 10)


def test_two_paths_are_one_too_many() -> None:
    edges = [aligned(A, B, 1), aligned(B, D, 1), aligned(A, C, 1), aligned(C, D, 1)]
    assert reason(place(Instant(A, 5), D, edges)) is ClockGap.SEVERAL_ALIGNMENTS


def test_a_direct_alignment_comes_before_paths() -> None:
    edges = [aligned(A, B, 1), aligned(B, D, 1), aligned(A, D, 50)]
    assert place(Instant(A, 5), D, edges) == placed(D, 55, 1)


def test_no_way_at_all() -> None:
    assert reason(place(Instant(A, 5), D, [aligned(A, B, 1), aligned(C, D, 1)])) is ClockGap.NO_ALIGNMENT


@given(st.integers(0, 1000), st.integers(-500, 500), st.integers(-500, 500))
def test_there_and_back_is_the_same_time(ns: int, first: int, second: int) -> None:
    edges = [aligned(A, B, first, until=10_000), Alignment(B, C, second, 1, -10_000, 10_000)]
    there = place(Instant(A, ns), C, edges)
    assert isinstance(there, Placed)
    back = place(there.instant, A, edges)
    assert isinstance(back, Placed)
    assert back.instant == Instant(A, ns)


def test_only_a_monotonic_domain_gives_durations() -> None:
    assert duration_ns(Instant(MONOTONIC, 5), Instant(MONOTONIC, 9)) == 4
    assert reason(duration_ns(Instant(WALL, 5), Instant(WALL, 9))) is ClockGap.NOT_MONOTONIC
    assert reason(duration_ns(Instant(MONOTONIC, 5), Instant(WALL, 9))) is ClockGap.NO_ALIGNMENT
    assert reason(duration_ns(Instant(A, 9), Instant(A, 5))) is ClockGap.STEPPED_BACK


def test_a_wall_clock_that_steps_back_is_seen() -> None:
    assert stepped_back(wall_start_ns=10, wall_end_ns=9) is True
    assert stepped_back(wall_start_ns=10, wall_end_ns=10) is False


def test_domains_are_named_by_host_and_boot() -> None:
    process = ProcessIdentity(host="h", boot_id="b", pid_namespace="n", pid=7, start_ticks=9)
    assert wall_domain(process).name == "h/b/unix_epoch_ns"
    assert monotonic_domain(process).name == "h/b/monotonic_ns"


def test_without_a_boot_id_no_two_processes_share_a_domain() -> None:
    nobody: Gap[RunGap] = Gap(RunGap.NO_BOOT_ID)
    one = ProcessIdentity(host="h", boot_id=nobody, pid_namespace="n", pid=7, start_ticks=9)
    other = ProcessIdentity(host="h", boot_id=nobody, pid_namespace="n", pid=8, start_ticks=9)
    assert wall_domain(one) == wall_domain(one)
    assert wall_domain(one) != wall_domain(other)
