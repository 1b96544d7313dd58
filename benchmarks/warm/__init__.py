"""Python programs in children forked from a process that has imported torch already: programs without their start-up.

`python()` is the path of an interpreter to start instead of `sys.executable`. It takes the same arguments and stands
for the program that it starts: its output, its signals, its exit status. Programs that a warm process could not stand
for are started by the ordinary interpreter, see `client.served`.
"""

import atexit
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from benchmarks.warm import client

ROOT = Path(__file__).parents[2]
SERVER = "benchmarks.warm.server"
SOCKET = "socket"  # beside the interpreter
SERVED = {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}  # what torch and the interpreter read when they begin


def environment(**more: str) -> dict[str, str]:
    """This process's environment as a served program needs it."""
    return {**os.environ, **SERVED, **more}


@cache
def python(*modules: str) -> str:
    """An interpreter whose programs find torch, and these modules, imported; its server ends with this process."""
    if Path(sys.executable).with_name(SOCKET).is_socket():  # this program is served, and so are those that it starts
        return sys.executable
    place = Path(tempfile.mkdtemp(prefix="warm-"))
    atexit.register(_remove, place, owner=os.getpid())
    path = place / "python"
    parts = (sys.executable, "-I", "-S", client.__file__, sys.executable, str(place / SOCKET))
    path.write_text(f'#!/bin/sh\nexec {shlex.join(parts)} "$@"\n', encoding="utf-8")
    path.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place / SOCKET))
        listener.listen(64)
        subprocess.Popen(
            [sys.executable, "-m", SERVER, str(listener.fileno()), str(path), *modules],
            env=environment(),
            stdin=subprocess.PIPE,  # it ends when we have: nobody else holds the other end
            stdout=subprocess.DEVNULL,
            cwd=ROOT,
            pass_fds=[listener.fileno()],
        )
    return str(path)


def _remove(place: Path, *, owner: int) -> None:
    if os.getpid() == owner:  # and no fork of it
        shutil.rmtree(place, ignore_errors=True)
