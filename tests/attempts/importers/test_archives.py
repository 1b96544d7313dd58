"""Archives are read a member at a time and bounded (AT-16)."""

import struct
import zipfile
from pathlib import Path

import pytest

from paritrace.attempts.importers import archives
from paritrace.attempts.importers.archives import ArchiveError, open_archive


def zipped(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def test_a_bomb_is_refused_by_its_size_before_it_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MOST_MEMBER_BYTES", 1000)
    with open_archive(zipped(tmp_path / "a.zip", small=b"x", bomb=b"0" * 1_000_000)) as archive:
        assert archive.read(0) == b"x"
        with pytest.raises(ArchiveError, match="1,000,000 bytes unpacked"):
            archive.read(1)


def test_many_members_together_are_bounded_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MOST_TOTAL_BYTES", 1500)
    with open_archive(zipped(tmp_path / "a.zip", one=b"0" * 1000, two=b"0" * 1000)) as archive:
        assert len(archive.read(0)) == 1000
        with pytest.raises(ArchiveError, match="more than the 500"):
            archive.read(1)


def test_a_member_that_lies_about_its_size_is_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", lies=b"0" * 5000)
    data = bytearray(path.read_bytes())
    directory = data.index(b"PK\x01\x02")
    data[directory + 24 : directory + 28] = struct.pack("<I", 100)
    path.write_bytes(bytes(data))
    with open_archive(path) as archive, pytest.raises(ArchiveError, match="cannot be unpacked"):
        archive.read(0)


def test_an_encrypted_member_is_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", secret=b"x")
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(bytes(data))
    with open_archive(path) as archive, pytest.raises(ArchiveError, match="encrypted"):
        archive.read(0)


def test_two_members_of_one_name_are_two(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("one", b"1")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("one", b"2")
    with open_archive(path) as opened:
        assert [(index, member.name) for index, member in opened.members()] == [(0, "one"), (1, "one")]
        assert (opened.read(0), opened.read(1)) == (b"1", b"2")
