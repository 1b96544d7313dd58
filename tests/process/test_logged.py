"""A command is run to its end, and nothing that it started is left: not even what became a daemon (P5, AU-15)."""

import os
import sys
from pathlib import Path

import pytest

from paritrace.process.ending import children_of
from paritrace.process.kernel_calls import is_subreaper
from paritrace.process.logged import run_logged

DAEMON = """
import os, sys, time
if os.fork():
    os.wait()
    sys.exit(3)
os.setsid()
if os.fork():
    os._exit(0)
for number in range(3):  # who holds the output lets it go
    os.close(number)
with open(sys.argv[1] + ".new", "w") as stream:
    stream.write(str(os.getpid()))
os.rename(sys.argv[1] + ".new", sys.argv[1])
time.sleep(600)
"""
WAITS = "import os, sys, time\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.01)\n"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives orphans to those who ask")
def test_a_daemon_of_a_command_that_has_ended_well_is_ended_too(tmp_path: Path) -> None:
    script, said = tmp_path / "daemon.py", tmp_path / "pid"
    program = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {DAEMON!r}, sys.argv[1]])\n{WAITS}"
    script.write_text(program)
    before, was = children_of(os.getpid()), is_subreaper()
    with (tmp_path / "log").open("wb") as log:
        done = run_logged(
            [sys.executable, str(script), str(said)],
            directory=tmp_path,
            environment=os.environ,
            log=log,
            deadline_seconds=60.0,
        )
    assert done.status == 0
    assert not Path(f"/proc/{int(said.read_text())}").exists()
    assert children_of(os.getpid()) == before
    assert is_subreaper() == was
