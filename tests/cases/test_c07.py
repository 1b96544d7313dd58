"""C-07: a disk that fills during a write leaves the old file, and an empty one is never taken for a new start."""

import errno
from contextlib import suppress
from pathlib import Path

import pytest

from paritrace.errors import EvidenceError, HostError, Outcome
from paritrace.files import LOCAL
from paritrace.runs.opening import begin_session
from paritrace.runs.reading import open_run
from paritrace.testing.faults import Fault, FaultyFiles, hidden_leftovers
from tests.runs.making import capture, request, torchrun
from tests.store.places import Place
from tests.store.reading import streams


@pytest.mark.parametrize("fault", [Fault.FAIL, Fault.TEAR])
def test_enospc_keeps_the_old_content(tmp_path: Path, fault: Fault) -> None:
    path = tmp_path / "checkpoint.json"
    LOCAL.replace(path, b'{"sequence": 3}\n')
    for at in range(1, 6):
        with pytest.raises(HostError) as caught:
            FaultyFiles(at=at, fault=fault, number=errno.ENOSPC).replace(path, b'{"sequence": 4}\n')
        assert (caught.value.code, caught.value.outcome) == ("disk_full", Outcome.REFUSED)
        assert path.read_bytes() == b'{"sequence": 3}\n'
        assert hidden_leftovers(tmp_path) == []
    LOCAL.replace(path, b'{"sequence": 4}\n')
    assert path.read_bytes() == b'{"sequence": 4}\n'


def test_an_empty_envelope_stops_loudly_and_is_not_overwritten(tmp_path: Path) -> None:
    capture(tmp_path / "run", environ=torchrun(0))
    envelope = tmp_path / "run" / "run.json"
    envelope.write_bytes(b"")
    with pytest.raises(EvidenceError) as joining:
        begin_session(tmp_path / "run", request(torchrun(1)))
    with pytest.raises(EvidenceError) as reading:
        open_run(tmp_path / "run")
    assert joining.value.code == reading.value.code == "invalid_document"
    assert envelope.read_bytes() == b""


def test_an_empty_checkpoint_with_published_bundles_stops_loudly(tmp_path: Path) -> None:
    place = Place(tmp_path)
    for number in range(3):
        place.append("a.jsonl", b"%d\n" % number)
        place.once()
    place.staged.checkpoint.write_bytes(b"")
    for sync in (place.once, place.final):
        with pytest.raises(EvidenceError) as caught:
            sync()
        assert (caught.value.code, caught.value.outcome) == ("checkpoint_lost", Outcome.REFUSED)
    assert [name.sequence for name in place.bundles()] == [1, 2, 3]
    assert place.staged.checkpoint.read_bytes() == b""


@pytest.mark.parametrize("fault", [Fault.FAIL, Fault.TEAR])
def test_a_full_staging_disk_leaves_a_checkpoint_that_reads(tmp_path: Path, fault: Fault) -> None:
    place = Place(tmp_path)
    place.write("a.jsonl", b"1\n")
    place.once()
    for at in range(1, 60, 3):
        place.append("a.jsonl", b"2\n")
        with suppress(HostError):
            place.syncer(files=FaultyFiles(at=at, fault=fault, number=errno.ENOSPC)).once()
    place.final()
    assert streams(place) == {("a.jsonl", 1): b"1\n" + b"2\n" * 20}
