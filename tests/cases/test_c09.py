"""C-09: a kill between open and write leaves the old content or the new one, never an empty file."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from paritrace.files import LOCAL
from paritrace.testing.faults import Fault, FaultyFiles, Stopped

OLD, NEW = b"old" * 1000, b"new" * 1500

REPLACING = """
import sys
from pathlib import Path
from paritrace.files import LOCAL
path, number = Path(sys.argv[1]), 0
while True:
    LOCAL.replace(path, (b"%d " % number) * 5000)
    number += 1
    print(number, flush=True)
"""


@pytest.mark.parametrize("fault", [Fault.STOP, Fault.TEAR_AND_STOP, Fault.DONE_THEN_STOP])
def test_a_kill_at_every_call(tmp_path: Path, fault: Fault) -> None:
    path = tmp_path / "file"
    at = 0
    while True:
        at += 1
        path.write_bytes(OLD)
        files = FaultyFiles(at=at, fault=fault)
        try:
            files.replace(path, NEW)
        except Stopped:
            files.faulty.release()
        else:
            break
        assert path.read_bytes() in (OLD, NEW)
    assert at > 6
    assert path.read_bytes() == NEW


@pytest.mark.slow
@pytest.mark.parametrize("after", range(1, 16))
def test_a_real_kill_at_any_time(tmp_path: Path, after: int) -> None:
    path = tmp_path / "file"
    with subprocess.Popen([sys.executable, "-c", REPLACING, str(path)], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        for _ in range(after):
            child.stdout.readline()
        os.kill(child.pid, signal.SIGKILL)
        child.wait(timeout=60)
    number, *rest = set(path.read_bytes().split())
    assert rest == []
    assert int(number) >= after - 1
    assert len(path.read_bytes()) == 5000 * (len(number) + 1)
    assert LOCAL.list(tmp_path) == (path,)
