"""`python -m benchmarks.warm.server LISTENER EXECUTABLE MODULE…`: imports torch once, and forks for each program.

It ends, with its children, when its standard input does: when the process that started it has ended.
"""

import atexit
import marshal
import os
import selectors
import signal
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn

from benchmarks.warm.client import read_at_start
from benchmarks.warm.program import become
from benchmarks.warm.warming import warm_up


@dataclass(frozen=True)
class Child:
    """A program that runs: its process, what becomes readable when that has ended, and who waits for it."""

    pid: int
    ended: int
    client: socket.socket


class Server:
    """One thread: a fork copies that one alone."""

    def __init__(self, listener: socket.socket, *, executable: str, environment: dict[str, str]) -> None:
        self._listener = listener
        self._executable = executable
        self._set = {
            name: value for name, value in os.environ.items() if name not in environment
        }  # by what we imported
        self._environment = read_at_start(self._set | environment)
        self._events = selectors.DefaultSelector()

    def serve(self) -> None:
        """Until standard input ends."""
        self._events.register(0, selectors.EVENT_READ)
        self._events.register(self._listener, selectors.EVENT_READ)
        while True:
            for key, _ in self._events.select():
                if isinstance(key.data, Child):
                    self._heard(key.data, has_ended=key.fd == key.data.ended)
                elif key.fd == self._listener.fileno():
                    self._accept()
                else:
                    return

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        head, files, _, _ = socket.recv_fds(client, 8, 3)
        with client.makefile("rb") as stream:
            arguments, directory, environment, leads = marshal.loads(stream.read(int.from_bytes(head, "big")))
        environment = self._set | environment
        if read_at_start(environment) != self._environment:
            self._answer(client, 0)
            client.close()
        else:
            sys.stdout.flush()
            pid = os.fork()
            if pid == 0:
                self._begin(files, directory, leads)
                become(arguments, environment=environment, executable=self._executable)
            child = Child(pid, os.pidfd_open(pid), client)
            self._answer(client, pid)
            for file in (child.ended, client):
                self._events.register(file, selectors.EVENT_READ, child)
        for file in files:
            os.close(file)

    def _begin(self, files: list[int], directory: str, leads: tuple[bool, bool]) -> None:
        """In the child: no file of the server's is left, those of the client are the standard ones."""
        if leads[0]:
            os.setsid()
        elif leads[1]:
            os.setpgid(0, 0)
        for key in list(self._events.get_map().values()):
            if key.fd != 0:
                os.close(key.fd)
        self._events.close()
        for target, source in enumerate(files):
            os.dup2(source, target)
            os.close(source)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.chdir(directory)
        atexit._clear()

    def _heard(self, child: Child, *, has_ended: bool) -> None:
        """The child has ended, or the client has: then nobody is left who could end the child."""
        if not has_ended:
            self._events.unregister(child.client)
            os.kill(child.pid, signal.SIGKILL)
            return
        _, status = os.waitpid(child.pid, 0)
        self._answer(child.client, os.waitstatus_to_exitcode(status))
        for file in (child.ended, child.client):
            if file in self._events.get_map():
                self._events.unregister(file)
        os.close(child.ended)
        child.client.close()

    def _answer(self, client: socket.socket, number: int) -> None:
        with suppress(OSError):  # the client has ended; what becomes of its program is seen elsewhere
            client.sendall(number.to_bytes(8, "big", signed=True))


def main() -> NoReturn:
    number, executable, *modules = sys.argv[1:]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # from a keyboard: who owns us ends, and so do we
    del sys.path[0]  # the folder that holds us; a program has its own
    environment = dict(os.environ)
    warm_up(*modules)
    with socket.socket(fileno=int(number)) as listener:
        Server(listener, executable=executable, environment=environment).serve()
    os._exit(0)


if __name__ == "__main__":
    main()
