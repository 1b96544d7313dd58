"""Appending: whole lines, torn tails kept apart, errors at every operation, two writers at once (EV-7)."""

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from paritrace.errors import HostError, InternalError, Outcome
from paritrace.files import LOCAL
from paritrace.testing.faults import ErrnoFiles, Fault, FaultyFiles, Stopped


def test_a_new_file_is_made_once(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with LOCAL.append_new(path) as appender:
        assert appender.write(b"one\n") == 0
        assert appender.write(b"two\nthree\n") == 4
        assert appender.offset == 14
        appender.sync()
    assert path.read_bytes() == b"one\ntwo\nthree\n"
    with pytest.raises(HostError) as caught:
        LOCAL.append_new(path)
    assert (caught.value.code, caught.value.outcome) == ("already_there", Outcome.REFUSED)


def test_an_incomplete_line_is_never_written(tmp_path: Path) -> None:
    with LOCAL.append_new(tmp_path / "journal") as appender, pytest.raises(InternalError):
        appender.write(b"no newline")
    assert (tmp_path / "journal").read_bytes() == b""


def test_closing_twice_is_fine_and_writing_after_it_is_not(tmp_path: Path) -> None:
    appender = LOCAL.append_new(tmp_path / "journal")
    appender.close()
    appender.close()
    with pytest.raises(InternalError):
        appender.write(b"x\n")


@pytest.mark.parametrize(
    ("content", "torn"),
    [
        (b"", None),
        (b"one\n", None),
        (b"one\ntwo", (4, 3)),
        (b"one", (0, 3)),
        (b"x\n" + b"y" * 200_000, (2, 200_000)),
        (b"y" * 200_000, (0, 200_000)),
        (b"y" * 200_000 + b"\n", None),
    ],
)
def test_a_torn_tail_is_found_and_kept_apart(tmp_path: Path, content: bytes, torn: tuple[int, int] | None) -> None:
    path = tmp_path / "journal"
    path.write_bytes(content)
    with LOCAL.append_existing(path) as appender:
        assert (appender.torn, appender.offset) == (torn, len(content))
        start = appender.write(b"next\n")
    gap = b"\n" if torn else b""
    assert path.read_bytes() == content + gap + b"next\n"
    assert start == len(content + gap)


def test_a_full_disk_leaves_a_torn_tail_that_the_next_write_keeps_apart(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    files = FaultyFiles(at=3, fault=Fault.TEAR, number=errno.ENOSPC)  # open, first write, second write
    with files.append_new(path) as appender:
        appender.write(b"one\n")
        with pytest.raises(HostError) as caught:
            appender.write(b"second\n")
        assert (caught.value.code, caught.value.outcome) == ("disk_full", Outcome.FAILED)
        torn = [appender.torn]
        appender.write(b"three\n")
        torn.append(appender.torn)
    assert torn == [(4, 3), None]
    assert path.read_bytes() == b"one\nsec\nthree\n"


def test_a_write_that_took_nothing_is_refused_and_may_be_tried_again(tmp_path: Path) -> None:
    files = FaultyFiles(at=2, fault=Fault.FAIL, number=errno.ENOSPC)
    with files.append_new(tmp_path / "journal") as appender:
        with pytest.raises(HostError) as caught:
            appender.write(b"one\n")
        assert (caught.value.outcome, appender.torn) == (Outcome.REFUSED, None)
        appender.write(b"one\n")
    assert (tmp_path / "journal").read_bytes() == b"one\n"


def test_a_failed_sync_is_not_tried_again(tmp_path: Path) -> None:
    files = FaultyFiles(at=3, fault=Fault.FAIL, number=errno.EIO)
    with files.append_new(tmp_path / "journal") as appender:
        appender.write(b"one\n")
        for _ in range(2):
            with pytest.raises(HostError) as caught:
                appender.sync()
            assert (caught.value.code, caught.value.outcome) == ("io_error", Outcome.FAILED)
    assert files.faulty.log.count("fsync") == 1


def test_a_failing_close_is_told_once(tmp_path: Path) -> None:
    appender = ErrnoFiles(operation="close", number=errno.EIO).append_new(tmp_path / "journal")
    with pytest.raises(HostError):
        appender.close()
    appender.close()


@pytest.mark.parametrize("fault", list(Fault))
def test_whatever_happens_the_acknowledged_lines_are_there_in_order(tmp_path: Path, fault: Fault) -> None:
    lines = [f"line {number} {'x' * number}\n".encode() for number in range(6)]
    for at in range(1, 10):
        path = tmp_path / f"{fault.value}-{at}"
        files, told = FaultyFiles(at=at, fault=fault), []
        try:
            appender = files.append_new(path)
            for line in lines:
                try:
                    appender.write(line)
                except HostError:
                    continue
                told.append(line)
        except (Stopped, HostError):
            pass
        found = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        assert [line for line in found if line in told] == told
        torn = [line for line in found if line not in lines]
        assert len(torn) <= 1
        assert all(lines[0][:4].startswith(line[:4]) for line in torn if line.strip())


WRITER = """
import sys
from pathlib import Path
from paritrace.files import LOCAL
with LOCAL.append_existing(Path(sys.argv[1])) as appender:
    sys.stdin.readline()
    for number in range(400):
        appender.write(f"{sys.argv[2]} {number} {'x' * (number % 97)}\\n".encode())
"""


@pytest.mark.slow
def test_two_processes_append_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    LOCAL.append_new(path).close()
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), name], stdin=subprocess.PIPE) for name in "ab"
    ]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write(b"go\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate(timeout=60)
        assert writer.returncode == 0
    lines = path.read_text().splitlines()
    assert len(lines) == 800
    for name in "ab":
        mine = [line.split() for line in lines if line.startswith(name)]
        assert [int(parts[1]) for parts in mine] == list(range(400))
        assert all(len(parts[2]) == int(parts[1]) % 97 for parts in mine if len(parts) == 3)
