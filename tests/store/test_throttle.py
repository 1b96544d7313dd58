"""The pace of uploads: the cap holds over any second; an idle time or a jump of the clock buys no burst (ST-7)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paritrace.errors import RequestError
from paritrace.store.throttle import BURST_BYTES, CHUNK_BYTES, MIB, Throttle
from paritrace.testing.clocks import ManualClock

CAP = 32 * MIB


def sent(clock: ManualClock, throttle: Throttle, *, chunks: int) -> list[tuple[float, int]]:
    """When each chunk could go, in seconds."""
    times: list[tuple[float, int]] = []
    for _ in range(chunks):
        throttle.take(MIB)
        times.append((clock.monotonic_ns() / 1e9, MIB))
    return times


def test_the_cap_holds_over_the_whole_and_over_every_second() -> None:
    clock = ManualClock()
    times = sent(clock, Throttle(CAP, clock=clock), chunks=128)
    seconds = times[-1][0] - 1.0
    assert 0.97 <= 128 * MIB / seconds / CAP <= 1.01
    for start, _ in times:
        assert sum(size for at, size in times if start <= at < start + 1.0) <= 1.05 * CAP


@given(idle_seconds=st.floats(min_value=0, max_value=1e6))
def test_an_idle_time_or_a_jump_buys_one_mebibyte(idle_seconds: float) -> None:
    clock = ManualClock()
    throttle = Throttle(CAP, clock=clock)
    throttle.take(CAP)
    clock.move(round(idle_seconds * 1e9))
    start = clock.monotonic_ns()
    throttle.take(2 * CAP)
    assert (clock.monotonic_ns() - start) / 1e9 >= 2.0 - (BURST_BYTES + CHUNK_BYTES) / CAP


@given(steps=st.lists(st.integers(min_value=-(10**18), max_value=10**18), max_size=20))
def test_the_wall_clock_is_never_asked(steps: list[int]) -> None:
    clock = ManualClock()
    throttle = Throttle(CAP, clock=clock)
    for step in steps:
        clock.step_wall(step)
        throttle.take(MIB)
    assert sum(clock.slept_seconds) <= (len(steps) * MIB + CHUNK_BYTES) / CAP


def test_a_wait_is_bounded_by_what_is_asked() -> None:
    clock = ManualClock()
    throttle = Throttle(CAP, clock=clock)
    throttle.take(10 * CAP)
    assert sum(clock.slept_seconds) <= 10.0 + CHUNK_BYTES / CAP


def test_without_a_rate_nobody_waits() -> None:
    clock = ManualClock()
    Throttle(None, clock=clock).take(1 << 40)
    assert clock.slept_seconds == []


@pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf")])
def test_a_rate_is_positive(rate: float) -> None:
    with pytest.raises(RequestError) as caught:
        Throttle(rate)
    assert caught.value.code == "bad_rate"
