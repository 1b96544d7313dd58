"""F-13: a second session in a directory whose owner lives is refused, and says who that is (SE-18)."""

import subprocess
import sys
from pathlib import Path

import pytest

from paritrace.session.opening import read_session
from tests.cases.live_sessions import DEADLINE_SECONDS, WORKLOAD, layers

pytestmark = pytest.mark.slow


def test_f13_a_second_start_changes_nothing_and_names_the_owner(tmp_path: Path) -> None:
    directory = tmp_path / "S"
    with layers(directory) as session:
        owner = read_session(directory).owner
        before = {path: path.read_bytes() for path in (directory / "session.json", directory / "token")}
        second = subprocess.run(
            [sys.executable, "-m", "paritrace", "session", "start", str(directory), WORKLOAD, "--ranks", "2"],
            capture_output=True,
            text=True,
            timeout=DEADLINE_SECONDS,
            check=False,
        )
        assert second.returncode == 2
        assert second.stderr.startswith("refused:")
        assert "[session_owned]" in second.stderr
        assert f"process {owner.pid} of {owner.host}" in second.stderr
        assert {path: path.read_bytes() for path in before} == before
        session.run(1, autosave=False, wait=True)
        assert session.status().step == 1
