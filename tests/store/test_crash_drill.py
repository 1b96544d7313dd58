"""The syncing process is killed, torn or failed at every file operation; then it goes on (ST-15, PF-22)."""

import errno
from itertools import count
from pathlib import Path

import pytest

from paritrace.errors import HostError
from paritrace.files import Files
from paritrace.testing.faults import Fault, FaultyFiles, Stopped
from tests.store.drilling import check_after, check_checkpoint, check_visible, life, survived
from tests.store.places import Place

KILLS = [Fault.STOP, Fault.TEAR_AND_STOP, Fault.DONE_THEN_STOP]
SAMPLE = 9  # the fast tests take every ninth operation, the slow ones all


def drill(tmp_path: Path, fault: Fault, *, step: int, number: int = errno.ENOSPC) -> int:
    """Run the life with the fault at every `step`-th operation until none is left; return how many were injected."""
    for injected, at in enumerate(count(1, step)):
        place = Place(tmp_path / str(at))
        files = FaultyFiles(at=at, fault=fault, number=number)
        ended = survived(place, files)
        files.faulty.release()
        if not files.faulty.happened:
            assert ended is None
            check_after(place)
            return injected
        behind_the_last = fault is Fault.DONE_THEN_STOP and files.faulty.count == at  # nothing came that could stop
        assert isinstance(ended, Stopped) or fault in (Fault.FAIL, Fault.TEAR) or behind_the_last
        check_visible(place)
        check_checkpoint(place)
        if (place.originals / "calls.jsonl").exists() and (place.originals / "tensors").exists():
            check_after(place)
    raise AssertionError("the life ends")


@pytest.mark.parametrize("fault", KILLS)
def test_killed_at_some_operations(tmp_path: Path, fault: Fault) -> None:
    assert drill(tmp_path, fault, step=SAMPLE * 4) >= 5


@pytest.mark.slow
@pytest.mark.parametrize("fault", KILLS)
def test_killed_at_every_operation(tmp_path: Path, fault: Fault) -> None:
    assert drill(tmp_path, fault, step=1) > 150


@pytest.mark.slow
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EACCES])
@pytest.mark.parametrize("fault", [Fault.FAIL, Fault.TEAR])
def test_an_error_at_every_third_operation(tmp_path: Path, fault: Fault, number: int) -> None:
    assert drill(tmp_path, fault, step=3, number=number) > 50


def test_killed_twice_in_a_row(tmp_path: Path) -> None:
    for first, second in ((20, 15), (45, 30), (90, 60)):
        place = Place(tmp_path / str(first))
        for at, act in ((first, life), (second, syncs)):
            files = FaultyFiles(at=at, fault=Fault.TEAR_AND_STOP)
            survived(place, files, act)
            files.faulty.release()
            check_visible(place)
        check_after(place)


def syncs(place: Place, files: Files) -> None:
    place.syncer(files=files, batch_bytes=600).final()


def test_what_an_error_leaves_says_refused_or_failed(tmp_path: Path) -> None:
    place = Place(tmp_path)
    ended = survived(place, FaultyFiles(at=30, fault=Fault.FAIL, number=errno.ENOSPC))
    assert isinstance(ended, HostError)
    assert ended.code == "disk_full"
    assert ended.fix
