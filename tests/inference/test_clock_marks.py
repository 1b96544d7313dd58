"""A clock's reading lies between two marks, and the offset between what all of them allow (IN-16)."""

from hypothesis import given, settings
from hypothesis import strategies as st

from paritrace.inference.clock_marks import Mark, Marks, mark_of

CLOCK = "host/boot/monotonic_ns"


def seen(*places: tuple[Mark, int], thread: str = "9/1") -> Marks:
    marks = Marks()
    for mark, start_ns in places:
        marks.see(mark.name, thread=thread, start_ns=start_ns)
    return marks


def test_a_mark_is_known_by_its_name_and_no_other_name_is_one() -> None:
    mark = Mark(12, 3, 456, CLOCK)
    assert mark_of(mark.name) == mark
    for name in (
        "",
        "paritrace.clock",
        "paritrace.clock/1.2/x/clock",
        "xparitrace.clock/1.2/3/c",
        "paritrace.clock/1.2/3/",
    ):
        assert mark_of(name) is None


def test_in16_the_reading_lies_between_two_beginnings_and_the_narrowest_pair_of_a_series_counts() -> None:
    (one,) = seen(
        (Mark(1, 0, 990, CLOCK), 0), (Mark(1, 1, 1_050, CLOCK), 100), (Mark(1, 2, 1_110, CLOCK), 120)
    ).measured()
    assert (one.first_ns, one.last_ns, one.num_series) == (100, 120, 1)
    assert one.offset_ns == 1_000  # between 1110 - 120 and 1110 - 100
    assert one.uncertainty_ns == 11


def test_in16_a_drift_between_two_series_is_inside_the_uncertainty() -> None:
    first = ((Mark(1, 0, 0, CLOCK), 0), (Mark(1, 1, 1_005, CLOCK), 10))
    later = ((Mark(2, 0, 0, CLOCK), 9_000), (Mark(2, 1, 10_105, CLOCK), 9_010))
    (one,) = seen(*first, *later).measured()
    assert (one.first_ns, one.last_ns, one.num_series) == (0, 9_010, 2)
    assert one.offset_ns - one.uncertainty_ns < 1_005 - 10
    assert one.offset_ns + one.uncertainty_ns > 10_105 - 9_000


def test_marks_alone_of_two_threads_of_two_clocks_or_out_of_order_measure_nothing_together() -> None:
    assert seen((Mark(1, 0, 5, CLOCK), 0)).measured() == ()
    assert seen((Mark(1, 0, 5, CLOCK), 0), (Mark(1, 2, 9, CLOCK), 8)).measured() == ()
    assert seen((Mark(1, 0, 5, CLOCK), 0), (Mark(1, 1, 9, "other"), 8)).measured() == ()
    assert seen((Mark(1, 0, 5, CLOCK), 10), (Mark(1, 1, 9, CLOCK), 8)).measured() == ()
    apart = seen((Mark(1, 0, 5, CLOCK), 0))
    apart.see(Mark(1, 1, 9, CLOCK).name, thread="9/2", start_ns=8)
    assert apart.measured() == ()


@settings(deadline=None)  # a loaded machine stops anywhere
@given(
    st.integers(-(10**15), 10**15), st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=2, max_size=9)
)
def test_in16_the_true_offset_is_never_outside(offset: int, steps: list[tuple[int, int]]) -> None:
    now = 0
    places: list[tuple[Mark, int]] = []
    for number, (before, after) in enumerate(steps):
        reading = now + before
        now = reading + after
        places.append((Mark(1, number, reading + offset + 10**15, CLOCK), now))
    (one,) = seen(*places).measured()
    assert abs(one.offset_ns - (offset + 10**15)) <= one.uncertainty_ns
