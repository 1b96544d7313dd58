"""C-05: a file that gets the inode of a removed one does not get its offset."""

import os
from pathlib import Path

import pytest

from tests.store.places import Place
from tests.store.reading import streams


def test_an_inode_that_is_used_again(tmp_path: Path) -> None:
    place = Place(tmp_path)
    path = place.write("a.jsonl", b"old\n" * 4)
    inode = path.stat().st_ino
    place.once()
    path.unlink()
    for number in range(200):
        path = place.write(f"new{number}.jsonl", b"new\n" * 9)
        if path.stat().st_ino == inode:
            break
    else:
        pytest.skip("this file system did not use the inode again")
    place.once()
    assert streams(place)[path.name, 1] == b"new\n" * 9
    assert streams(place)["a.jsonl", 1] == b"old\n" * 4


def test_the_same_name_and_inode_with_another_content(tmp_path: Path) -> None:
    """What an inode that is used again looks like at its most alike: name, device, inode and more bytes than before."""
    place = Place(tmp_path)
    path = place.write("a.jsonl", b"old\n" * 4)
    place.once()
    before = path.stat()
    path.write_bytes(b"new\n" * 9)
    assert path.stat().st_ino == before.st_ino
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    place.once()
    assert streams(place) == {("a.jsonl", 1): b"old\n" * 4, ("a.jsonl", 2): b"new\n" * 9}
