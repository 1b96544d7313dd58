"""A level is given up, and says so, when it costs more than the budget or the writer does not keep up (CA-2, CA-13)."""

import threading
from pathlib import Path

import pytest

from paritrace.capture.budget import Budget
from paritrace.capture.own_time import OwnTime
from paritrace.capture.recorder import LEAST_INTERVAL_NS, MAX_LAG_INTERVALS, Recorder
from paritrace.capture.settings import CaptureSettings, QueueFull, parse_budget
from paritrace.capture.writer import JournalWriter
from paritrace.errors import RequestError
from paritrace.evidence import calls
from paritrace.evidence.calls import Level, LevelMark
from paritrace.evidence.journal import JournalReader
from paritrace.testing.clocks import ManualClock

OP = frozenset({Level.DIGEST, Level.MODULE, Level.OP})
HEADER = calls.JournalHeader(calls.FORMAT, calls.VERSION, "rank-0", 0, 0, 1, (Level.OP,), {"bits": "xxh3-64"}, 4)


class Disk:
    """Takes nothing until it is let go, as a slow disk."""

    def __init__(self, *, open_: bool = True) -> None:
        self.free = threading.Event()
        self.data = b""
        if open_:
            self.free.set()

    def write(self, data: bytes) -> None:
        assert self.free.wait(60)
        self.data += data

    def sync(self) -> None: ...
    def close(self) -> None: ...


def recorder_on(disk: Disk, clock: ManualClock, settings: CaptureSettings) -> Recorder:
    writer = JournalWriter(disk, max_bytes=1 << 40, queue_full=QueueFull.BLOCK, clock=clock)
    writer.start()
    writer.put(HEADER)
    return Recorder(settings, writer=writer, clock=clock, root=Path("/nowhere"), main=None)


def marks(recorder: Recorder, disk: Disk) -> list[tuple[int, tuple[Level, ...], str]]:
    disk.free.set()
    recorder.writer.close(end=list)
    return [
        (record.step, record.levels, record.reason)
        for record in JournalReader([disk.data], name="journal")
        if isinstance(record, LevelMark)
    ]


def test_a_writer_that_is_two_intervals_behind_lowers_the_level_step_by_step() -> None:
    disk, clock = Disk(open_=False), ManualClock()
    recorder = recorder_on(disk, clock, CaptureSettings(levels=OP, steps=(0, 100)))
    for _ in range(30):
        clock.move(LEAST_INTERVAL_NS // 2)
        recorder.end_step()
    found = marks(recorder, disk)
    assert [levels for _, levels, _ in found] == [("digest", "module", "op"), ("digest", "module"), ("digest",)]
    begun, first, second = (step for step, _, _ in found)
    assert (begun, first) == (0, 2 * MAX_LAG_INTERVALS + 2), "not before more than two intervals have passed"
    assert second - first > 2 * MAX_LAG_INTERVALS, "the lower level is given its time, too"
    assert "lag: the writer was 1" in found[1][2]
    assert "level op given up, module goes on" in found[1][2]


def test_a_writer_that_keeps_up_lowers_nothing_however_long_the_steps_are() -> None:
    disk, clock = Disk(), ManualClock()
    recorder = recorder_on(disk, clock, CaptureSettings(levels=OP, steps=(0, 100)))
    for _ in range(30):
        clock.move(10 * LEAST_INTERVAL_NS)
        recorder.end_step()
        recorder.writer.drain()
    assert len(marks(recorder, disk)) == 1


@pytest.mark.parametrize(("text", "share"), [("5%", 0.05), (" 12.5 %", 0.125), ("100%", 1.0)])
def test_a_budget_is_a_share_in_per_cent(text: str, share: float) -> None:
    assert parse_budget(text) == share


@pytest.mark.parametrize("text", ["5", "0%", "-5%", "five%", "", "1e3%", "5%%"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(RequestError) as caught:
        parse_budget(text)
    assert caught.value.code == "bad_budget"


class Training:
    """Steps of 100 ms of its own, in which observing takes what the test says for each level."""

    def __init__(self, costs_ms: dict[Level, int], *, settings: CaptureSettings) -> None:
        self.disk, self.clock = Disk(), ManualClock()
        self.recorder = recorder_on(self.disk, self.clock, settings)
        Budget(self.recorder, share=0.05).install()
        self._costs = costs_ms

    def step(self) -> None:
        own = self.recorder.own_time
        assert own is not None
        self.clock.move(100_000_000)
        observe = own.timed(lambda: self.clock.move(1_000_000 * self._cost()))
        own.timed(observe)()  # a hook within a hook counts once
        self.recorder.end_step()

    def _cost(self) -> int:
        return sum(self._costs.get(level, 0) for level in self.recorder.levels)


def test_levels_over_the_budget_are_given_up_one_after_the_other() -> None:
    training = Training({Level.OP: 40, Level.MODULE: 6, Level.DIGEST: 1}, settings=CaptureSettings(levels=OP))
    for _ in range(4):
        training.step()
    found = marks(training.recorder, training.disk)
    assert [(step, levels) for step, levels, _ in found] == [
        (0, ("digest", "module", "op")),
        (1, ("digest", "module")),
        (2, ("digest",)),
    ]
    assert found[1][2] == (
        "budget: observing took 47.0% of the workload's own time, over 5%; level op given up, module goes on"
    )
    assert found[2][2].startswith("budget: observing took 7.0%")


def test_levels_within_the_budget_stay() -> None:
    training = Training({Level.MODULE: 4, Level.DIGEST: 1}, settings=CaptureSettings(steps=(0, 10)))
    for _ in range(12):
        training.step()
    assert [reason for _, _, reason in marks(training.recorder, training.disk)] == ["begin", "steps"]


def test_what_a_script_does_before_its_first_step_does_not_make_observing_look_cheap() -> None:
    """CA-2: a minute of imports and of making the model is no part of what a step costs."""
    training = Training({Level.OP: 40, Level.MODULE: 1}, settings=CaptureSettings(levels=OP))
    training.clock.move(60_000_000_000)
    training.recorder.set_up_ended()
    for _ in range(2):
        training.step()
    found = marks(training.recorder, training.disk)
    assert [step for step, _, _ in found] == [0, 1]
    assert found[1][2].startswith("budget: observing took 41.0% of the workload's own time")


def test_where_even_the_digests_cost_too_much_this_is_told_once() -> None:
    training = Training({Level.DIGEST: 6}, settings=CaptureSettings(steps=(0, 1)))
    for _ in range(5):
        training.step()
    reasons = [reason for _, _, reason in marks(training.recorder, training.disk)]
    assert reasons[1:] == [
        "budget: observing took 6.0% of the workload's own time, over 5%; level module given up, digest goes on",
        "budget: observing took 6.0% of the workload's own time, over 5%; there is no level below digest",
    ]


def test_own_time_is_taken_when_the_observed_code_raises() -> None:
    clock = ManualClock()
    own = OwnTime(clock.monotonic_ns)

    def fails() -> None:
        clock.move(7)
        raise ValueError("ours")

    for _ in range(2):
        with pytest.raises(ValueError, match="ours"):
            own.timed(fails)()
    assert own.total_ns == 14
