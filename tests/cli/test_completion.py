"""Shell completion (SU-1)."""

import os
import subprocess
import sys

import pytest

from paritrace.cli.entry import COMMANDS, status_of


@pytest.mark.parametrize("shell", ["bash", "fish", "zsh"])
def test_script_of_each_shell(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(["completion", shell]) == 0
    assert f"_PARITRACE_COMPLETE={shell}_complete" in capsys.readouterr().out


def test_the_shell_is_answered_with_command_names() -> None:
    asked = {"_PARITRACE_COMPLETE": "bash_complete", "COMP_WORDS": "paritrace co", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "paritrace"],
        env={**os.environ, **asked},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    words = [line.partition(",")[2] for line in done.stdout.splitlines()]
    assert words == [name for name in COMMANDS if name.startswith("co")]


def test_unknown_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(["completion", "command.com"]) == 2
    assert "'bash', 'fish', 'zsh'" in capsys.readouterr().err
