"""A folder that cannot be read costs what is in it, while it cannot be read, and nothing else (ST-4, ST-16)."""

import errno
import json
import os
from pathlib import Path

import pytest

from paritrace.cli.entry import status_of
from paritrace.errors import HostError
from paritrace.evidence.gaps import Gap
from paritrace.files import Files, Primitives
from paritrace.store.records import RemarkKind
from paritrace.store.status import status_of as store_status_of
from paritrace.store.verifying import StoreVerdict, verify_store
from tests.store.places import Place
from tests.store.reading import streams


class Unreadable(Primitives):
    """A disk on which some folders cannot be listed; nothing is forced to disk."""

    def __init__(self, *names: str, number: int = errno.EACCES) -> None:
        self._names = names
        self._number = number

    def names(self, path: Path) -> list[str]:
        if path.name in self._names:
            raise OSError(self._number, os.strerror(self._number), str(path))
        return super().names(path)

    def fsync(self, fd: int) -> None:
        """No power is cut here."""


def unread(*names: str, number: int = errno.EACCES) -> Files:
    return Files(Unreadable(*names, number=number))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    place.append("a.jsonl", b"1\n")
    place.append("shut/b.jsonl", b"1\n")
    place.write("shut/deep/c.bin", b"c")
    place.append("open/d.jsonl", b"1\n")
    return place


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EIO])
def test_st16_the_rest_is_published_the_gap_is_named_and_a_later_sync_repairs_it(place: Place, number: int) -> None:
    report = place.syncer(files=unread("shut", number=number)).final()
    assert [(one.kind, one.path) for one in report.transient] == [(RemarkKind.UNREADABLE, "shut")]
    assert isinstance(report.transient[0].length, Gap)
    assert set(streams(place)) == {("a.jsonl", 1), ("open/d.jsonl", 1)}
    (rank,) = verify_store(place.target()).ranks
    assert [(one.kind, one.path) for one in rank.remarks] == [(RemarkKind.UNREADABLE, "shut")]
    assert place.final().transient == ()
    assert streams(place)["shut/b.jsonl", 1] == b"1\n"
    assert streams(place)["shut/deep/c.bin", 1] == b"c"
    found = verify_store(place.target())
    assert (found.verdict, found.ranks[0].remarks) == (StoreVerdict.INTACT, ())


@pytest.mark.parametrize("final", [False, True])
def test_st3_what_was_published_from_a_folder_that_cannot_be_read_now_is_not_published_again(
    place: Place, final: bool
) -> None:
    place.once()
    for _ in range(4):  # a journal that is gone is given up after two syncs
        place.append("a.jsonl", b"2\n")
        syncer = place.syncer(files=unread("shut"))
        report = syncer.final() if final else syncer.once()
        assert (report.remarks, [one.path for one in report.transient]) == ((), ["shut"])
    place.append("shut/b.jsonl", b"2\n")
    report = place.final()
    assert (report.remarks, report.transient) == ((), ())
    assert streams(place)["shut/b.jsonl", 1] == b"1\n2\n"
    assert [version for origin, version in streams(place) if origin.startswith("shut/")] == [1, 1]


def test_st10_what_waited_in_it_still_waits_and_is_no_loss(place: Place) -> None:
    place.write("shut/big.jsonl", b"x" * 90 + b"\n")
    place.write("shut/big.bin", b"y" * 500)
    place.once(batch_bytes=95)
    report = place.syncer(files=unread("shut"), batch_bytes=95).once()
    assert report.remarks == ()
    assert report.waiting_bytes >= 500
    place.final(batch_bytes=95)
    assert streams(place)["shut/big.jsonl", 1] == b"x" * 90 + b"\n"
    assert verify_store(place.target()).ranks[0].remarks == ()


def test_st4_a_file_that_was_renamed_out_of_it_goes_on_under_its_new_name(place: Place) -> None:
    place.once()
    (place.originals / "shut" / "b.jsonl").rename(place.originals / "open" / "b.jsonl")
    place.append("open/b.jsonl", b"2\n")
    place.syncer(files=unread("shut")).once()
    assert streams(place)["shut/b.jsonl", 1] == b"1\n2\n"
    assert ("open/b.jsonl", 1) not in streams(place)


def test_st16_the_folder_of_the_rank_itself_stops_the_sync(place: Place) -> None:
    with pytest.raises(HostError) as caught:
        place.syncer(files=unread("rank-0")).once()
    assert caught.value.code == "not_permitted"
    assert place.bundles() == []


def test_st13_how_much_waits_is_not_known_then(place: Place) -> None:
    place.once()
    told = store_status_of(None, place.staged.staging, "r", batch_bytes=1, files=unread("shut"))
    assert isinstance(told.staged[0].waiting_bytes, Gap)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every folder")
def test_st16_by_a_real_mode_the_exit_status_is_3_and_0_when_it_is_repaired(
    place: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    staging = str(place.staged.staging)
    words = ["store", "sync", "--staging", staging, "--store", str(tmp_path / "s"), "--run-id", "r", "--rank", "0"]
    (place.originals / "shut").chmod(0)
    try:
        assert status_of([*words, "--node-id", "n0", "--final"]) == 3
        out = capsys.readouterr().out
        assert "1 path could not be read" in out
        assert "unreadable: 'shut'" in out
        assert status_of([*words, "--node-id", "n0", "--final", "--json"]) == 3
        assert [one["path"] for one in json.loads(capsys.readouterr().out)["transient"]] == ["shut"]
    finally:
        (place.originals / "shut").chmod(0o755)
    assert status_of([*words, "--node-id", "n0", "--final"]) == 0
