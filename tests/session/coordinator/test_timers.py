"""Timers by name (P5)."""

from paritrace.session.coordinator.timers import Timers
from paritrace.testing.clocks import ManualClock


def test_p5_a_timer_that_was_set_anew_or_cleared_never_comes() -> None:
    clock = ManualClock()
    timers = Timers(clock)
    assert timers.next_in(1.0) == 1.0
    for name, seconds in (("late", 5.0), ("early", 2.0), ("cleared", 1.0), ("anew", 1.0)):
        timers.set(name, seconds)
    timers.set("cleared", None)
    timers.set("never set", None)
    timers.set("anew", 3.0)
    assert timers.next_in(10.0) == 2.0
    clock.move(round(1.5 * 1e9))
    assert timers.due() == ()
    clock.move(round(4.0 * 1e9))
    assert timers.next_in(10.0) == 0.0
    assert timers.due() == ("early", "anew", "late")
    assert timers.due() == ()
