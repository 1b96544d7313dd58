"""E-17: a worker that was killed by signal 9 on a machine with free memory: the sender is unknown, and that is said."""

from pathlib import Path

from paritrace.process.stop_facts import StopCause
from paritrace.runs.record_words import end_words
from tests.runs.recording import shell


def test_e17_a_killed_worker_is_not_called_a_memory_kill(tmp_path: Path) -> None:
    done = shell(tmp_path, "(kill -9 $$) ; exit 1")
    assert done.end.stop is not None
    assert (done.end.stop.cause, done.end.stop.reason) == (StopCause.UNCLASSIFIED, None)
    told = end_words(done.end)[0]
    assert "signal 9 (SIGKILL); what caused it is not known" in told
    assert "memory" not in told.lower()
