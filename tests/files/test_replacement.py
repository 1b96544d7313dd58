"""Replacing a file piece by piece: the old content or the new one, never a mixture (EV-10, P4)."""

from pathlib import Path

import pytest

from paritrace.errors import HostError
from paritrace.files import Files, Primitives


class FailingAt(Primitives):
    """Fails the n-th write, sync or rename."""

    def __init__(self, failing: int) -> None:
        self.left = failing

    def _count(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise OSError(28, "No space left on device")

    def write(self, fd: int, data: memoryview) -> int:
        self._count()
        return super().write(fd, data[:2])

    def fsync(self, fd: int) -> None:
        self._count()
        super().fsync(fd)

    def rename(self, source: Path, target: Path) -> None:
        self._count()
        super().rename(source, target)


def test_ev10_pieces_become_one_file(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "calls.parquet"
    with Files(FailingAt(1000)).replacing(path) as replacement:
        replacement.write(b"abc")
        replacement.write(b"defgh")
        assert not path.exists()
    assert path.read_bytes() == b"abcdefgh"
    assert replacement.size == 8
    assert [entry.name for entry in path.parent.iterdir()] == ["calls.parquet"]


def test_p4_an_error_inside_the_block_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError):
        _write_and_fail(path)
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def _write_and_fail(path: Path) -> None:
    with Files().replacing(path) as replacement:
        replacement.write(b"new")
        raise ZeroDivisionError


@pytest.mark.parametrize("failing", range(1, 10))  # six short writes, fsync, rename, fsync of the folder
def test_p4_a_failing_operation_leaves_the_old_file_or_the_new_one(tmp_path: Path, failing: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(HostError) as raised:
        _write(path, Files(FailingAt(failing)))
    assert raised.value.outcome == ("failed" if failing == 9 else "refused")
    assert path.read_bytes() == (b"new content" if failing == 9 else b"old")
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def _write(path: Path, files: Files) -> None:
    with files.replacing(path) as replacement:
        replacement.write(b"new content")
