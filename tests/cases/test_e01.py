"""E-01: 137 is an exit code or a signal, by the wait status alone, and never a memory kill without a counter's rise."""

from pathlib import Path

from paritrace.runs.record_words import end_words
from tests.runs.recording import shell


def test_e01_an_exit_code_of_137_and_signal_9_are_told_apart(tmp_path: Path) -> None:
    code = "\n".join(end_words(shell(tmp_path / "code", "exit 137").end))
    killed = "\n".join(end_words(shell(tmp_path / "killed", "kill -9 $$").end))
    assert "exit code 137" in code
    assert "signal" not in code
    assert "signal 9 (SIGKILL)" in killed
    for told in (code, killed):
        assert "memory" not in told.lower()
        assert "oom" not in told.lower()
