"""Reading, folders, claims and locks (EV-10, EV-11, EV-13, P5)."""

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from paritrace.errors import HostError
from paritrace.files import LOCAL
from paritrace.testing.clocks import ManualClock
from paritrace.testing.faults import ErrnoFiles


def test_chunks_are_bounded_and_add_up(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(range(256)) * 10)
    chunks = list(LOCAL.iter_chunks(path, chunk_bytes=1000))
    assert [len(chunk) for chunk in chunks] == [1000, 1000, 560]
    assert b"".join(LOCAL.iter_chunks(path, length=1500, chunk_bytes=1000)) == path.read_bytes()[:1500]


def test_a_missing_file_is_not_found_or_none(tmp_path: Path) -> None:
    with pytest.raises(HostError) as caught:
        LOCAL.read(tmp_path / "no")
    assert caught.value.code == "not_found"
    assert LOCAL.read_if_present(tmp_path / "no") is None
    assert LOCAL.exists(tmp_path / "no") is False


def test_an_unreadable_file_is_never_called_missing(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(HostError) as caught:
        ErrnoFiles(operation="read", number=errno.EIO).read_if_present(tmp_path / "file")
    assert caught.value.code == "io_error"


def test_a_fifo_is_refused_at_once_instead_of_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(HostError) as caught:
        LOCAL.read(tmp_path / "fifo")
    assert caught.value.code == "not_a_file"


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    with pytest.raises(HostError) as caught:
        LOCAL.read(tmp_path)
    assert caught.value.code in ("not_a_file", "io_error")


def test_hidden_names_are_left_out(tmp_path: Path) -> None:
    for name in ("b", "a", ".hidden"):
        (tmp_path / name).write_bytes(b"")
    assert [path.name for path in LOCAL.list(tmp_path)] == ["a", "b"]
    assert [path.name for path in LOCAL.list_all(tmp_path)] == [".hidden", "a", "b"]


def test_a_dangling_link_exists_but_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    assert LOCAL.exists(tmp_path / "link") is True
    assert LOCAL.is_regular(tmp_path / "link") is False
    assert LOCAL.is_folder(tmp_path / "link") is False


def test_a_claim_is_won_once(tmp_path: Path) -> None:
    assert [LOCAL.claim(tmp_path / "run") for _ in range(3)] == [True, False, False]


def test_a_claim_without_permission_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HostError) as caught:
        ErrnoFiles(operation="mkdir", number=errno.EACCES).claim(tmp_path / "run")
    assert caught.value.code == "not_permitted"


def test_removing_a_link_leaves_its_target(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"x")
    (tmp_path / "link").symlink_to("target")
    LOCAL.remove(tmp_path / "link")
    assert [path.name for path in tmp_path.iterdir()] == ["target"]


def test_a_lock_keeps_others_out_for_a_bounded_time(tmp_path: Path) -> None:
    clock = ManualClock()
    with LOCAL.locked(tmp_path / ".lock"):
        with pytest.raises(HostError) as caught, LOCAL.locked(tmp_path / ".lock", clock=clock, wait_seconds=0.5):
            pass
        assert caught.value.code == "lock_timeout"
        assert sum(clock.slept_seconds) == pytest.approx(0.5)
    with LOCAL.locked(tmp_path / ".lock", clock=clock, wait_seconds=0):
        pass


def test_a_file_system_without_locks_is_named(tmp_path: Path) -> None:
    files = ErrnoFiles(operation="lock", number=errno.ENOLCK)
    with pytest.raises(HostError) as caught, files.locked(tmp_path / ".lock"):
        pass
    assert caught.value.code == "no_locks"


HOLDER = """
import os, signal, sys
from pathlib import Path
from paritrace.files import LOCAL
with LOCAL.locked(Path(sys.argv[1])):
    print("held", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", HOLDER, str(tmp_path / ".lock")], stdout=subprocess.PIPE, timeout=60, check=False
    )
    assert (ended.stdout, ended.returncode) == (b"held\n", -9)
    with LOCAL.locked(tmp_path / ".lock", clock=ManualClock(), wait_seconds=0):
        pass


def test_ev12_what_goes_away_while_a_folder_is_looked_at_is_left_out(tmp_path: Path) -> None:
    for name in ("a", "b", ".hidden"):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "link").symlink_to("nowhere")
    found = LOCAL.statuses(tmp_path)
    assert next(found)[0] == ".hidden"
    (tmp_path / "a").unlink()
    assert [(name, stat.S_ISLNK(status.st_mode)) for name, status in found] == [("b", False), ("link", True)]


def test_statuses_of_what_is_no_folder_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(HostError) as caught:
        list(LOCAL.statuses(tmp_path / "none"))
    assert caught.value.code == "not_found"
