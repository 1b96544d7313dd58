"""C-10: a target on another file system: temporaries lie beside the resolved one, EXDEV is an error."""

import errno
from pathlib import Path

import pytest

from paritrace.errors import HostError, Outcome
from paritrace.files import LOCAL
from paritrace.store.targets.directory import DirectoryTarget
from paritrace.store.throttle import Throttle
from paritrace.testing.faults import ErrnoFiles, hidden_leftovers
from tests.store.places import Place
from tests.store.reading import streams


def test_a_link_to_elsewhere_is_replaced_at_its_destination(tmp_path: Path) -> None:
    elsewhere = tmp_path / "other" / "target"
    elsewhere.parent.mkdir()
    elsewhere.write_bytes(b"old")
    (tmp_path / "link").symlink_to(elsewhere)
    LOCAL.replace(tmp_path / "link", b"new")
    assert (elsewhere.read_bytes(), (tmp_path / "link").is_symlink()) == (b"new", True)


def test_exdev_publishes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(HostError) as caught:
        ErrnoFiles(operation="rename", number=errno.EXDEV).replace(path, b"new")
    assert (caught.value.code, caught.value.outcome) == ("cross_device", Outcome.REFUSED)
    assert (path.read_bytes(), hidden_leftovers(tmp_path)) == (b"old", [])


def test_exdev_on_the_store_publishes_nothing_and_the_next_sync_goes_on(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("a.jsonl", b"1\n")
    place.once()
    place.append("a.jsonl", b"2\n")
    broken = DirectoryTarget(place.store, files=ErrnoFiles(operation="rename", number=errno.EXDEV))
    with pytest.raises(HostError) as caught:
        place.syncer(target=broken).once()
    assert caught.value.code == "cross_device"
    assert hidden_leftovers(place.store) == [str(place.store / ".paritrace-bundles")]
    assert streams(place) == {("a.jsonl", 1): b"1\n"}
    place.once()
    assert streams(place) == {("a.jsonl", 1): b"1\n2\n"}


def test_a_store_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "store").symlink_to("elsewhere")
    place = Place(tmp_path)
    place.write("a.jsonl", b"1\n")
    place.final()
    assert streams(place) == {("a.jsonl", 1): b"1\n"}
    source = place.write("x", b"data")
    with pytest.raises(HostError):
        DirectoryTarget(source).put_if_absent("y", source, sha256="0" * 64, throttle=Throttle(None))
