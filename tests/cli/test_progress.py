"""Progress goes to stderr, drawn on a terminal only, by one rank only (SU-5)."""

import io
import threading

import pytest

from paritrace.cli.progress import plain_lines, progress

WAIT_SECONDS = 10.0  # far above one interval of a millisecond, also on a loaded machine


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_plain_lines_name_the_stage_while_it_lasts() -> None:
    lines: list[str] = []
    said = threading.Event()

    def write(line: str) -> None:
        lines.append(line)
        if line.startswith("pairing ("):
            said.set()

    with plain_lines(write, every_seconds=0.001) as stage:
        stage("pairing")
        assert said.wait(WAIT_SECONDS)
    ended = len(lines)
    assert not [thread for thread in threading.enumerate() if thread.name == "paritrace-progress"]
    assert len(lines) == ended


def test_a_quick_command_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress(stream=io.StringIO(), environment={}) as stage:
        stage("reading")
    assert capsys.readouterr() == ("", "")


def test_a_terminal_is_drawn_on() -> None:
    terminal = Terminal()
    with progress(stream=terminal, environment={}) as stage:
        stage("reading the baseline")
    assert "reading the baseline" in terminal.getvalue()


@pytest.mark.parametrize("environment", [{"RANK": "1"}, {"CI": "true"}, {"TERM": "dumb"}])
def test_nothing_is_drawn_for_other_ranks_and_in_jobs(environment: dict[str, str]) -> None:
    terminal = Terminal()
    with progress(stream=terminal, environment=environment) as stage:
        stage("reading")
    assert terminal.getvalue() == ""
