"""The ring of events: a cursor, and what a slow reader lost (SE-14, SE-27)."""

import asyncio
import threading
import time

from hypothesis import given
from hypothesis import strategies as st

from paritrace.session.coordinator.ring import Ring

LONG_SECONDS = 30.0  # only a broken test waits so long


@given(st.integers(0, 40), st.integers(1, 8), st.lists(st.integers(0, 45), max_size=5), st.integers(1, 10))
def test_se14_what_is_given_and_what_is_lost_come_to_all_after_the_cursor(
    num_events: int, capacity: int, cursors: list[int], limit: int
) -> None:
    ring = Ring(capacity)
    for number in range(1, num_events + 1):
        ring.put("event", {"number": number}, unix_ns=0)
    for cursor in cursors:
        found = ring.since(cursor, limit=limit)
        numbers = [event.number for event in found.events]
        start = min(cursor, num_events) + found.lost
        assert numbers == list(range(start + 1, start + 1 + len(numbers)))
        assert found.cursor == (numbers[-1] if numbers else start)
        assert found.lost == max(0, num_events - capacity - cursor)
        assert len(numbers) == min(limit, num_events - start)


def test_se27_a_reader_is_woken_by_an_event_of_another_thread() -> None:
    ring = Ring()

    async def read() -> float:
        before = time.monotonic()
        putting = threading.Thread(target=ring.put, args=("event", {}), kwargs={"unix_ns": 0})
        waiting = asyncio.create_task(ring.wait(0, seconds=LONG_SECONDS))
        await asyncio.sleep(0)  # it waits now
        putting.start()
        await waiting
        putting.join()
        return time.monotonic() - before

    assert asyncio.run(read()) < LONG_SECONDS
    assert ring.since(0).events[0].what == "event"


def test_se27_a_reader_that_gave_up_is_forgotten() -> None:
    ring = Ring()
    asyncio.run(ring.wait(0, seconds=0.01))
    ring.put("event", {}, unix_ns=0)
    asyncio.run(ring.wait(0, seconds=LONG_SECONDS))
    assert ring.last == 1
