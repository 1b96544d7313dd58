"""Lanes and identities: no slice of a lane overlaps another in part, no two ranks share an id (SU-8)."""

from hypothesis import given
from hypothesis import strategies as st

from paritrace.reports.traces.identities import number_of, pid_of, sequence_of
from paritrace.reports.traces.lanes import MOST, Lanes

Spans = list[tuple[int, int]]


def laid(spans: Spans) -> tuple[dict[int, Spans], int]:
    """By lane what lies there, rebuilt from beginnings and ends alone as a reader does; and how many found no lane."""
    lanes = Lanes()
    begun: dict[int, list[int]] = {}
    found: dict[int, Spans] = {}
    refused = 0
    for start, duration in spans:
        entered = lanes.enter(start, start + duration)
        if entered is None:
            refused += 1
            continue
        for end in entered.ended:
            found.setdefault(entered.lane, []).append((begun[entered.lane].pop(), end))
        begun.setdefault(entered.lane, []).append(start)
    for lane, ends in lanes.leave():
        for end in ends:
            found.setdefault(lane, []).append((begun[lane].pop(), end))
    return found, refused


def test_su8_overlap_goes_to_another_lane_and_nesting_stays() -> None:
    assert laid([(10, 10), (15, 10)]) == ({0: [(10, 20)], 1: [(15, 25)]}, 0)
    assert laid([(0, 10), (0, 10), (2, 3), (5, 5), (10, 1)]) == (
        {0: [(2, 5), (5, 10), (0, 10), (0, 10), (10, 11)]},
        0,
    )


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 40)), max_size=60))
def test_su8_every_slice_keeps_its_times_whatever_the_order(spans: Spans) -> None:
    found, refused = laid(spans)
    rebuilt = sorted(span for lane in found.values() for span in lane)
    assert len(rebuilt) + refused == len(spans)
    if not refused:
        assert rebuilt == sorted((start, start + duration) for start, duration in spans)
    for lane in found.values():
        for one in lane:
            for other in lane:
                nested = one[0] <= other[0] <= other[1] <= one[1] or other[0] <= one[0] <= one[1] <= other[1]
                assert nested or one[1] <= other[0] or other[1] <= one[0]


def test_su8_lanes_are_bounded() -> None:
    found, refused = laid([(number, 1000) for number in range(3 * MOST)])
    assert (len(found), refused) == (MOST, 2 * MOST)


def test_su8_ranks_share_no_id() -> None:
    assert len({sequence_of("a", rank) for rank in range(5000)}) == 5000
    assert len({pid_of(rank) for rank in range(5000)}) == 5000
    assert all(0 < sequence_of(source, rank) < 1 << 32 for source in "abc" for rank in (0, 1, 65_534))
    tracks = {number_of("a", rank, name) for rank in range(500) for name in ("calls", "steps")}
    assert len(tracks) == 1000
    assert all(0 < track < 1 << 63 for track in tracks)
    assert number_of("a", "bc") != number_of("ab", "c")
