"""C-11: files that are shared have the mode of the umask, not the 0600 of a temporary file."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from paritrace.files import LOCAL
from paritrace.store.restoring import restore
from tests.store.places import QUICK, Place


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    before = os.umask(0o027)
    yield
    os.umask(before)


def modes(folder: Path) -> set[int]:
    return {path.stat().st_mode & 0o777 for path in folder.rglob("*") if path.is_file()}


def test_new_and_replaced_files(tmp_path: Path) -> None:
    path = tmp_path / "file"
    LOCAL.replace(path, b"new")
    assert modes(tmp_path) == {0o640}
    path.chmod(0o664)
    LOCAL.replace(path, b"newer")
    assert modes(tmp_path) == {0o664}


def test_published_and_restored_files(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("a.jsonl", b"1\n")
    place.final()
    restore(place.target(), tmp_path / "back", files=QUICK)
    assert modes(place.store) == {0o640}
    assert modes(tmp_path / "back") == {0o640}
