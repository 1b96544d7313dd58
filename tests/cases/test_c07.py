"""C-07: a disk that fills during a write leaves the old file, and an empty one is never taken for a new start."""

import errno
from pathlib import Path

import pytest

from paritrace.errors import EvidenceError, HostError, Outcome
from paritrace.files import LOCAL
from paritrace.runs.opening import begin_session
from paritrace.runs.reading import open_run
from paritrace.testing.faults import Fault, FaultyFiles, hidden_leftovers
from tests.runs.making import capture, request, torchrun


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
