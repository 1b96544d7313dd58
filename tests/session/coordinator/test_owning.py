"""Who owns a session's directory, and who may read its token (SE-17, SE-18)."""

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from paritrace.errors import HostError, RequestError
from paritrace.process.identity import own_identity
from paritrace.session.coordinator.owning import owned, write_session, write_token
from paritrace.session.directory import TOKEN, SessionRecord
from paritrace.session.opening import read_session, read_token

OWNER = """
import sys
from pathlib import Path
from paritrace.session.coordinator.owning import owned
with owned(Path(sys.argv[1])):
    print("owned", flush=True)
    sys.stdin.read()
"""
RECORD = SessionRecord("s", "local", "m:C", {}, 2, own_identity(), "127.0.0.1", 1, 0)


def test_se18_a_second_owner_is_refused_while_the_first_lives_and_not_after_its_death(tmp_path: Path) -> None:
    directory = tmp_path / "session"
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == b"owned\n"
        write_session(directory, RECORD)
        with pytest.raises(HostError) as refused, owned(directory):
            pass
        assert refused.value.code == "session_owned"
        assert f"process {os.getpid()}" in refused.value.message
        first.send_signal(signal.SIGKILL)
    with owned(directory):
        assert read_session(directory) == RECORD


def test_se18_a_folder_of_other_things_is_no_session(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(RequestError) as refused, owned(tmp_path):
        pass
    assert refused.value.code == "not_a_session"
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_se17_the_token_is_for_its_user_alone_and_new_at_each_start(tmp_path: Path) -> None:
    first = write_token(tmp_path)
    second = write_token(tmp_path)
    assert first != second
    assert read_token(tmp_path) == second
    assert stat.S_IMODE((tmp_path / TOKEN).stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [TOKEN]


@pytest.mark.parametrize("text", ["", "{}", '{"session_id": 1}'])
def test_se18_a_record_that_cannot_be_read_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(RequestError, match="holds no session"):
        read_session(tmp_path)
    (tmp_path / "session.json").write_text(text)
    with pytest.raises(RequestError) as refused:
        read_session(tmp_path)
    assert refused.value.code == "not_a_session"
