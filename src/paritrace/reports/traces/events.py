"""Records that become a trace: calls with a time, instants, points of counters, and what was left out (SU-8)."""

from enum import StrEnum

from msgspec import Struct

Value = str | int | float | bool
Arguments = tuple[tuple[str, Value], ...]


class Event(Struct, frozen=True, gc=False):
    """A call or an instant. Times in ns since the zero of its side; `start_ns` -1: no time is known.

    `words`: arguments whose values are few; what events have in common is put together once. `flows`: numbers of 63
    bits, each of which joins events. An arrow leads to the later one, whichever that is.
    """

    start_ns: int
    duration_ns: int
    name: str
    category: str = ""
    file: str = ""
    function: str = ""
    line: int = 0
    words: tuple[tuple[str, str], ...] = ()
    arguments: Arguments = ()
    flows: tuple[int, ...] = ()


class Why(StrEnum):
    """Why something stands in the source and not as a slice of the trace."""

    STEPS = "other_steps"  # --steps
    MAX_EVENTS = "beyond_max_events"  # --max-events
    NO_DURATION = "no_duration_recorded"  # shown as an instant: a slice would claim that it took no time
    NO_LANE = "no_lane"  # shown as an instant: too many calls overlap in part


WORDS = {
    Why.STEPS: "of other steps, left out (--steps)",
    Why.MAX_EVENTS: "left out (--max-events)",
    Why.NO_DURATION: "have a moment and no recorded duration: shown as instants",
    Why.NO_LANE: "overlap more others than there are lanes: shown as instants",
}


class Tally(Struct):
    """What a file holds, and what it leaves out by reason; the last packet states it."""

    slices: int = 0
    instants: int = 0
    counters: int = 0
    flow_ends: int = 0
    summed_ns: int = 0  # durations of all slices
    left_out: dict[str, int] = {}

    def leave_out(self, why: Why, number: int = 1) -> None:
        if number:
            self.left_out[why] = self.left_out.get(why, 0) + number
