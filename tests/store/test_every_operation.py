"""A sync that is killed, or fails, at any file operation: what is published stays a whole prefix (ST-15, P4)."""

import errno
from pathlib import Path

import pytest

from paritrace.errors import ParitraceError
from paritrace.store.checkpoint import Checkpoint
from paritrace.store.documents import read_canonical
from paritrace.testing.faults import Fault, FaultyFiles, Stopped
from tests.store.places import Place
from tests.store.reading import streams

LINES = b"".join(b'{"n":%d}\n' % number for number in range(40))


def staged(folder: Path) -> Place:
    """One bundle is published; more records, another file and half a record wait."""
    place = Place(folder)
    place.write("a.jsonl", LINES)
    place.once()
    place.append("a.jsonl", LINES + b"half")
    place.write("t/x.bin", b"whole")
    return place


def whole(place: Place) -> None:
    """Every visible bundle is intact, numbered without a gap, and the checkpoint is not ahead of them."""
    found = streams(place)
    assert (LINES * 2).startswith(found["a.jsonl", 1])
    assert [name.sequence for name in place.bundles()] == list(range(1, len(place.bundles()) + 1))
    data = place.staged.checkpoint.read_bytes()
    checkpoint = read_canonical(data, Checkpoint, format_name="paritrace-store-checkpoint", name="checkpoint")
    assert checkpoint.progress.bundles <= len(place.bundles())


@pytest.mark.slow
@pytest.mark.parametrize("fault", list(Fault))
@pytest.mark.parametrize("final", [False, True])
def test_every_operation(tmp_path: Path, fault: Fault, final: bool) -> None:
    at, step = 0, 5 if fault in (Fault.FAIL, Fault.TEAR) else 3  # tests/crash goes through every one
    while True:
        at += step
        place = staged(tmp_path / str(at))
        files = FaultyFiles(at=at, fault=fault, number=errno.EIO if at % 2 else errno.ENOSPC)
        syncer = place.syncer(files=files)
        try:
            _ = syncer.final() if final else syncer.once()
        except (Stopped, ParitraceError):
            files.faulty.release()
        whole(place)
        place.final()
        assert streams(place) == {("a.jsonl", 1): LINES * 2, ("t/x.bin", 1): b"whole"}
        if not files.faulty.happened:
            break
    assert at > 40
