"""Runs one child in our place: its input and output are ours, our signals are its own, its status becomes ours.

The child leads a process group of its own, so that a signal sent to us reaches all that it started in it. Where we own
a terminal the child owns it meanwhile, as a shell's job does: it can read, be interrupted and be stopped from there.
"""

import os
import signal
import subprocess
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import FrameType

from paritrace.errors import RequestError

FORWARDED = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
SIGNAL_STATUS = 128  # what shells add to the number of the signal that ended a program


def run_in_our_place(command: Sequence[str], *, environment: Mapping[str, str], silent: bool = False) -> int:
    """Run `command` to its end, without a deadline: it is the user's job.

    `silent`: what it prints on standard output is thrown away.

    Returns its exit status, 128 + n where signal n ended it. Must be called on the main thread.

    Raises:
        RequestError: Refused, code `no_launcher`: there is no such program, or it cannot be started.
    """
    with _Forwarding() as forwarding:
        child = _started(command, environment, silent=silent)
        forwarding.to(child.pid)
        with _terminal_lent_to(child.pid) as terminal:
            status = _wait(child.pid, terminal)
        child.returncode = status
    return status if status >= 0 else SIGNAL_STATUS - status


def _started(command: Sequence[str], environment: Mapping[str, str], *, silent: bool) -> "subprocess.Popen[bytes]":
    try:
        # The command is what the user wrote; nothing of it passes through a shell.
        return subprocess.Popen(  # noqa: S603
            list(command),
            env=dict(environment),
            process_group=0,
            stdout=subprocess.DEVNULL if silent else None,
        )
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise RequestError(
            f"cannot start {command[0]}: {why}",
            code="no_launcher",
            fix="check that it is installed and on PATH, or write `python -m torch.distributed.run` for torchrun",
        ) from None


class _Forwarding:
    """Hands signals on to a process group; those that come before there is one wait for it."""

    def __init__(self) -> None:
        self._group = 0
        self._waiting: list[int] = []
        self._before: dict[int, object] = {}

    def __enter__(self) -> "_Forwarding":
        for number in FORWARDED:
            if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup: whom we ignore, the child ignores
                self._before[number] = signal.signal(number, self._hear)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # what `signal` gave is what it takes

    def to(self, group: int) -> None:
        self._group = group
        for number in self._waiting:
            _send(group, number)

    def _hear(self, number: int, _: FrameType | None) -> None:
        if self._group:
            _send(self._group, number)
        else:
            self._waiting.append(number)


def _send(group: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):  # it has ended, or became somebody else
        os.killpg(group, number)


def _wait(pid: int, terminal: int) -> int:
    """Wait for the end; a stop of the child becomes ours, so that the shell above has its prompt."""
    while True:
        _, status = os.waitpid(pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            return os.waitstatus_to_exitcode(status)
        if terminal >= 0 and os.WSTOPSIG(status) not in (signal.SIGTTIN, signal.SIGTTOU):
            _own(terminal, os.getpgrp())
            os.kill(os.getpid(), signal.SIGSTOP)  # goes on when the shell says so
            if _our_terminal() < 0:  # in the background now: the child, too
                _send(pid, signal.SIGCONT)
                continue
        elif terminal < 0:
            continue  # whoever stopped it, not through a terminal of ours, continues it
        _own(terminal, pid)
        _send(pid, signal.SIGCONT)


@contextmanager
def _terminal_lent_to(group: int) -> Generator[int]:
    """The terminal's descriptor while it belongs to `group`; -1 where we own none."""
    terminal = _our_terminal()
    if terminal < 0:
        yield terminal
        return
    _own(terminal, group)
    try:
        yield terminal
    finally:
        _own(terminal, os.getpgrp())


def _our_terminal() -> int:
    try:
        return 0 if os.tcgetpgrp(0) == os.getpgrp() else -1
    except OSError:  # no terminal
        return -1


def _own(terminal: int, group: int) -> None:
    """Make a group the terminal's foreground; a background process that does so is stopped unless it ignores that."""
    before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    try:
        os.tcsetpgrp(terminal, group)
    except OSError:
        pass  # the group has ended already, or the terminal has gone
    finally:
        signal.signal(signal.SIGTTOU, before)
