"""E-11: a timeout has the time at which our timer fired, and the host's end has its own; both are kept."""

import signal
from pathlib import Path

from tests.runs.recording import shell


def test_e11_the_timer_and_the_end_of_the_host_have_their_own_times(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    script = f"setsid sleep 300 & echo $! > {pid_file}; trap 'exit 4' TERM; while :; do sleep 0.05; done"
    done = shell(tmp_path / "run", script, timeout_seconds=0.5)
    facts = done.end.facts
    assert facts.timer is not None
    assert facts.timer.fired_ns is not None
    assert facts.host_ended_ns is not None
    assert facts.timer.set_ns + 500_000_000 <= facts.timer.fired_ns < facts.host_ended_ns
    assert done.end.stop is not None
    assert done.end.stop.used_seconds == (facts.timer.fired_ns - facts.timer.set_ns) / 1e9
    assert {signal.SIGTERM} <= {one.signal for one in facts.sent}
    pid = int(pid_file.read_text())
    assert {pid} <= {one.to for one in facts.sent}, "what it started in a session of its own is told to end with it"
