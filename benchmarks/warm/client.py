"""`client.py PYTHON SOCKET ARGUMENT…`: asks the server for a program, and stands for it until it has ended.

It imports little of the standard library, so that it begins in hundredths of a second.
"""

import marshal
import os
import signal
import socket
import sys

FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
FLAGS = frozenset({"-u", "-B"})
# What the interpreter or a library reads when it begins: a process that has begun reads it no more.
READ_AT_START = ("ATEN", "MKL", "NUMBA", "OMP", "OPENBLAS", "PYTHON", "PYTORCH", "TORCH")
REFUSED = -256  # no exit status and no signal
READ_LATER = (
    "PYTHONDONTWRITEBYTECODE",  # followed by the program, as its flag is
    *("PYTHON_EXEC", "TORCHELASTIC_", "TORCHINDUCTOR_CACHE_DIR", "TORCH_NCCL_"),
    *("TORCH_BISECT_", "TORCH_COMPILE_BACKEND"),  # by what is imported once something is compiled
    "PYTORCH_NVML_",  # when devices are looked for: libraries set it in passing
)


def served(arguments: list[str]) -> bool:
    """Whether it is a script, a module or code, with no option but those that a server can follow."""
    words = [*arguments, ""]
    while words[0] in FLAGS:
        del words[0]
    return words[0] in ("-m", "-c") or os.path.isfile(words[0])


def read_at_start(environment: dict[str, str]) -> dict[str, str]:
    """The part of an environment in which the server and the program have to agree."""
    return {
        name: value
        for name, value in environment.items()
        if name.startswith(READ_AT_START) and not name.startswith(READ_LATER)
    }


def number(connection: socket.socket) -> int:
    """The next number that the server says: first the process id, then the exit status."""
    data = b""
    while len(data) < 8:
        more = connection.recv(8 - len(data))
        if not more:
            sys.exit("the server of warm processes has ended")
        data += more
    return int.from_bytes(data, "big", signed=True)


def asked(address: str, arguments: list[str]) -> int:
    """The exit status of the program, negative if a signal ended it; REFUSED if the server cannot stand for it."""
    leads = (os.getsid(0) == os.getpid(), os.getpgrp() == os.getpid())
    request = marshal.dumps((arguments, os.getcwd(), dict(os.environ), leads))
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        socket.send_fds(connection, [len(request).to_bytes(8, "big")], [0, 1, 2])
        connection.sendall(request)
        child = number(connection)
        if child == 0:
            return REFUSED
        for one in FORWARDED:
            signal.signal(one, lambda received, _frame: os.kill(child, received))
        return number(connection)


def main() -> int:
    python, address, *arguments = sys.argv[1:]
    status = asked(address, arguments) if served(arguments) else REFUSED
    if status == REFUSED:
        os.execv(python, [python, *arguments])
    if status < 0:
        if -status != signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status


if __name__ == "__main__":
    sys.exit(main())
