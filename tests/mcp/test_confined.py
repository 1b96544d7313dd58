"""Files that reach some folders only: nothing else exists, nothing is written but in the scratch folder (AU-12)."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from paritrace.errors import HostError
from paritrace.files import Files
from paritrace.mcp.confined import confined


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder `in` with a file, a folder `out` with another, and links between them."""
    for name in ("in", "out", "scratch"):
        (tmp_path / name).mkdir()
    (tmp_path / "in" / "file").write_bytes(b"inside")
    (tmp_path / "out" / "file").write_bytes(b"outside")
    (tmp_path / "in" / "to-file").symlink_to(tmp_path / "out" / "file")
    (tmp_path / "in" / "to-folder").symlink_to(tmp_path / "out")
    (tmp_path / "in" / "loop").symlink_to(tmp_path / "in" / "loop")
    (tmp_path / "in" / "within").symlink_to("file")
    return tmp_path


@pytest.fixture
def files(place: Path) -> Files:
    return confined((place / "in",), scratch=place / "scratch")


def test_au12_what_is_inside_is_read(files: Files, place: Path) -> None:
    assert files.read(place / "in" / "file") == b"inside"
    assert files.read(place / "in" / "within") == b"inside"
    assert files.exists(place / "in")
    assert files.is_folder(place / "in")
    assert len(files.list(place / "in")) == 5


@pytest.mark.parametrize(
    "name", ["out/file", "in/../out/file", "in/to-file", "in/to-folder/file", "in/loop", "nothing", "in/nothing"]
)
def test_au12_outside_nothing_exists(files: Files, place: Path, name: str) -> None:
    for look in (files.read, files.size, files.list, files.modified_ns):
        with pytest.raises(HostError) as caught:
            look(place / name)
        assert caught.value.code == "not_found"
    assert files.read_if_present(place / name) is None
    assert not files.exists(place / "out")
    assert not files.exists(place / "out" / "file")


@pytest.mark.parametrize(
    "write",
    [
        lambda files, path: files.replace(path, b"new"),
        lambda files, path: files.create(path, [b"new"]),
        lambda files, path: files.mkdir(path),
        lambda files, path: files.remove(path.parent / "file"),
        lambda files, path: files.append_existing(path.parent / "file"),
        lambda files, path: files.append_new(path),
        lambda files, path: files.rename(path.parent / "file", path),
        lambda files, path: files.write_scratch(path, [b"new"]),
    ],
)
def test_au12_nothing_is_written_but_in_the_scratch_folder(
    files: Files, place: Path, write: Callable[[Files, Path], object]
) -> None:
    for folder in ("in", "out", "in/to-folder"):
        with pytest.raises(HostError) as caught:
            write(files, place / folder / "new")
        assert caught.value.code == "read_only"
    assert (place / "in" / "file").read_bytes() == b"inside"
    assert (place / "out" / "file").read_bytes() == b"outside"
    assert not (place / "in" / "new").exists()
    shutil.copy(place / "in" / "file", place / "scratch" / "file")
    write(files, place / "scratch" / "new")
