"""The last events of a session, in a ring: a reader who is slow loses its own and is told how many (SE-14, SE-27)."""

import asyncio
import threading
from collections import deque
from collections.abc import Mapping
from typing import Any

from paritrace.session.api_records import Event, Events

CAPACITY = 4096  # some minutes of a busy session; the journal has the rest
MOST_AT_ONCE = 1000  # of one answer: about a quarter of a megabyte


class Ring:
    """Written by the main thread, read by any; a reader is woken and holds nothing that the writer waits for."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._held: deque[Event] = deque(maxlen=capacity)
        self._last = 0
        self._lock = threading.Lock()
        self._waiting: set[_Waiter] = set()

    @property
    def last(self) -> int:
        """The number of the last event, 0 before the first."""
        return self._last

    def put(self, what: str, facts: Mapping[str, Any], *, unix_ns: int) -> None:
        """Append an event, and wake whoever waits for one."""
        with self._lock:
            self._last += 1
            self._held.append(Event(self._last, unix_ns, what, dict(facts)))
            waiting, self._waiting = self._waiting, set()
        for waiter in waiting:
            waiter.wake()

    def since(self, cursor: int, /, *, limit: int = MOST_AT_ONCE) -> Events:
        """Return what came after `cursor`, the oldest first. A cursor of the future is taken for the present."""
        with self._lock:
            cursor = min(max(cursor, 0), self._last)
            first = self._last - len(self._held)  # the number before the oldest that is held
            start = max(cursor, first)
            found = [self._held[at] for at in range(start - first, min(len(self._held), start - first + limit))]
        return Events(tuple(found), found[-1].number if found else start, start - cursor)

    async def wait(self, cursor: int, /, *, seconds: float) -> None:
        """Return once there is an event after `cursor`, or after so long."""
        waiter = _Waiter(asyncio.get_running_loop())
        with self._lock:
            if self._last > cursor:
                return
            self._waiting.add(waiter)
        try:
            await asyncio.wait_for(waiter.event.wait(), seconds)
        except TimeoutError:
            return
        finally:
            with self._lock:
                self._waiting.discard(waiter)


class _Waiter:
    """One reader of the server's loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.event = asyncio.Event()
        self._loop = loop

    def wake(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.event.set)
