"""C-19: a bundle that was listed and cannot be found from here yet is looked for again, and never called missing."""

import errno
import os
from pathlib import Path

import pytest

from paritrace.errors import EvidenceError
from paritrace.files import Files, Primitives
from paritrace.store.restoring import restore
from paritrace.store.targets.directory import DirectoryTarget
from paritrace.store.verifying import StoreVerdict, verify_store
from paritrace.testing.clocks import ManualClock
from tests.store.places import Place


class Stale(Primitives):
    """The first tries to open a bundle find nothing, as through another client's cache of names."""

    def __init__(self, tries: int, number: int) -> None:
        self.left, self._number = tries, number

    def open(self, path: Path, flags: int, mode: int = 0o666) -> int:
        if path.name.startswith("00000002-") and self.left:
            self.left -= 1
            raise OSError(self._number, os.strerror(self._number), str(path))
        return super().open(path, flags, mode)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    for number in range(3):
        place.append("a.jsonl", b"%d\n" % number)
        place.once()
    place.final()
    return place


def target(place: Place, tries: int, number: int) -> DirectoryTarget:
    return DirectoryTarget(place.store, files=Files(Stale(tries, number)), clock=ManualClock())


@pytest.mark.parametrize("number", [errno.ENOENT, errno.ESTALE])
def test_it_is_found_at_a_later_look(tmp_path: Path, place: Place, number: int) -> None:
    assert verify_store(target(place, 2, number)).verdict is StoreVerdict.INTACT
    restore(target(place, 2, number), tmp_path / "back")
    assert (tmp_path / "back" / "rank-0" / "a.jsonl").read_bytes() == b"0\n1\n2\n"


@pytest.mark.parametrize("number", [errno.ENOENT, errno.ESTALE])
def test_one_that_stays_away_is_not_checked_instead_of_missing(tmp_path: Path, place: Place, number: int) -> None:
    found = verify_store(target(place, 1000, number))
    assert found.verdict is StoreVerdict.NOT_CHECKED
    assert [problem.kind.value for problem in found.problems] == ["not_visible_here"]
    with pytest.raises(EvidenceError, match="1 problem"):
        restore(target(place, 1000, number), tmp_path / "back")
    assert not (tmp_path / "back").exists()
