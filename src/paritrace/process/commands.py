"""Runs one command in our place and keeps the facts of its end: wait status, our timer, every signal that we sent.

Its input and output are ours, untouched. It leads a process group of its own, so that a signal sent to us reaches all
that it started in it. Where we own a terminal the command owns it meanwhile, as a shell's job does.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING

from msgspec import Struct

from paritrace.clock import SYSTEM, Clock
from paritrace.errors import RequestError
from paritrace.process.terminal import our_terminal, own, terminal_lent_to

if TYPE_CHECKING:  # the words of an end are loaded once the command runs (PF-16)
    from paritrace.process.stop_facts import ExchangeEnd, SentSignal, Stopped, Timer, Wait

FORWARDED = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
CANCELLING = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT})
SIGNAL_STATUS = 128  # what shells add to the number of the signal that ended a program
FORCE_GRACE_SECONDS = 2.0  # between our SIGTERM after a timeout and SIGKILL (RR-3)


class CommandEnd(Struct, frozen=True):
    """How a command came to its end. Times are of the monotonic clock.

    `ended_ns`: when the end of its run was seen, of a timed-out one when the timer fired; `host_ended_ns`: when its
    wait status was there. `cpu_seconds`: its own and of the descendants that it waited for.
    """

    pid: int
    exchange: ExchangeEnd
    wait: Wait
    timer: Timer | None
    sent: tuple[SentSignal, ...]
    stopped: tuple[Stopped, ...]
    started_ns: int
    ended_ns: int
    host_ended_ns: int
    cpu_seconds: float

    @property
    def force_stopped(self) -> bool:
        """Whether it ended by the SIGKILL that we sent after the grace."""
        from paritrace.process.stop_facts import Signalled

        killed = any(one.signal == signal.SIGKILL for one in self.sent)
        return killed and self.wait == Signalled(signal.SIGKILL)

    @property
    def status(self) -> int:
        """The exit status as a shell would tell it: 128 + n where signal n ended it."""
        from paritrace.process.stop_facts import Exited

        return self.wait.code if isinstance(self.wait, Exited) else SIGNAL_STATUS + self.wait.signal


class Watch:
    """What looks at a command while it runs; this one does not."""

    def started(self, pid: int) -> None:
        """Called once the command runs, beside it."""

    def before_stop(self) -> None:
        """Called when the timer has fired, before any signal is sent."""

    def ended(self) -> None:
        """Called when the command has ended and has not been waited for: its number is still its own."""


UNWATCHED = Watch()


class Start(Struct, frozen=True):
    """How a command is started. `join` runs in the child before the command does, as `OwnCgroup.join` asks for."""

    environment: Mapping[str, str]
    timeout_seconds: float | None = None
    silent: bool = False
    join: Callable[[], None] | None = None


def run_command(
    command: Sequence[str], start: Start, *, watch: Watch | None = None, clock: Clock = SYSTEM
) -> CommandEnd:
    """Run `command` to its end. Must be called on the main thread.

    After `timeout_seconds` it is told to end with all that it started and, 2 s later, killed. Without one there is no
    deadline: it is the user's job.

    Raises:
        RequestError: Refused, code `no_launcher`: there is no such program, or it cannot be started.
    """
    with _Forwarding(clock) as forwarding:
        started_ns = clock.monotonic_ns()
        child = _started(command, start)
        run = _Run(
            child.pid, start.timeout_seconds, started_ns=started_ns, forwarding=forwarding, watch=watch or Watch()
        )
        forwarding.to(child.pid)
        with run.timed(), terminal_lent_to(child.pid) as terminal:
            run.watch.started(child.pid)
            run.wait(terminal)
        end = run.reap()
        child.returncode = 0  # it was waited for: nobody else may
    return end


class _Run:
    """One command between its start and its wait status."""

    def __init__(
        self, pid: int, timeout_seconds: float | None, *, started_ns: int, forwarding: _Forwarding, watch: Watch
    ) -> None:
        self.watch = watch
        self._pid = pid
        self._started_ns = started_ns
        self._limit = timeout_seconds
        self._forwarding = forwarding
        self._clock = forwarding.clock
        self._fired_ns: int | None = None
        self._host_ended_ns = started_ns
        self._stopped: list[Stopped] = []

    def timed(self) -> _Alarm:
        return _Alarm(self._limit, self._time_is_up)

    def wait(self, terminal: int) -> None:
        """Wait for the end without taking the status; a stop becomes ours, so that the shell above has its prompt."""
        while True:
            found = os.waitid(os.P_PID, self._pid, os.WEXITED | os.WSTOPPED | os.WNOWAIT)
            if found is None or found.si_code != os.CLD_STOPPED:
                self._host_ended_ns = self._clock.monotonic_ns()
                self.watch.ended()
                return
            os.waitid(os.P_PID, self._pid, os.WSTOPPED | os.WNOHANG)
            from paritrace.process.stop_facts import Stopped

            self._stopped.append(Stopped(signal=found.si_status, seen_ns=self._clock.monotonic_ns()))
            self._stop_too(terminal, found.si_status)

    def reap(self) -> CommandEnd:
        from paritrace.process.stop_facts import Exited, Signalled, Timer

        _, status, usage = os.wait4(self._pid, 0)
        code = os.waitstatus_to_exitcode(status)
        wait = Exited(code) if code >= 0 else Signalled(-code)
        timer = None if self._limit is None else Timer(self._limit, self._started_ns, self._fired_ns)
        return CommandEnd(
            pid=self._pid,
            exchange=self._exchange(wait),
            wait=wait,
            timer=timer,
            sent=tuple(self._forwarding.sent),
            stopped=tuple(self._stopped),
            started_ns=self._started_ns,
            ended_ns=self._host_ended_ns if self._fired_ns is None else self._fired_ns,
            host_ended_ns=self._host_ended_ns,
            cpu_seconds=usage.ru_utime + usage.ru_stime,
        )

    def _exchange(self, wait: Wait) -> ExchangeEnd:
        from paritrace.process.stop_facts import ExchangeEnd, Exited

        if self._fired_ns is not None:
            return ExchangeEnd.TIMED_OUT
        if wait == Exited(0):
            return ExchangeEnd.SUCCEEDED
        if any(one.why == "forwarded" and one.signal in CANCELLING for one in self._forwarding.sent):
            return ExchangeEnd.CANCELLED
        return ExchangeEnd.COMMAND_FAILED if isinstance(wait, Exited) else ExchangeEnd.HOST_EXITED

    def _time_is_up(self) -> None:
        """The timer's handler. What has ended by then has ended in time, and its group is left alone."""
        if os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return
        from paritrace.process.ending import end_tree

        self._fired_ns = self._clock.monotonic_ns()
        self.watch.before_stop()
        end_tree(self._pid, grace_seconds=FORCE_GRACE_SECONDS, sent=self._forwarding.note_stop)

    def _stop_too(self, terminal: int, number: int) -> None:
        if terminal >= 0 and number not in (signal.SIGTTIN, signal.SIGTTOU):
            own(terminal, os.getpgrp())
            os.kill(os.getpid(), signal.SIGSTOP)  # goes on when the shell says so
            if our_terminal() < 0:  # in the background now: the child, too
                self._forwarding.send(signal.SIGCONT, "terminal")
                return
        elif terminal < 0:
            return  # whoever stopped it, not through a terminal of ours, continues it
        own(terminal, self._pid)
        self._forwarding.send(signal.SIGCONT, "terminal")


class _Alarm:
    """Calls `act` on the main thread after so many seconds, without polling and without an exception in a wait."""

    def __init__(self, seconds: float | None, act: Callable[[], None]) -> None:
        self._seconds = seconds
        self._act = act
        self._before: object = None

    def __enter__(self) -> None:
        if self._seconds is not None:
            self._before = signal.signal(signal.SIGALRM, self._ring)
            signal.setitimer(signal.ITIMER_REAL, self._seconds)

    def _ring(self, number: int, frame: FrameType | None) -> None:
        self._act()

    def __exit__(self, *_: object) -> None:
        if self._seconds is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._before)  # type: ignore[arg-type]  # what `signal` gave is what it takes


def _started(command: Sequence[str], start: Start) -> subprocess.Popen[bytes]:
    try:
        # The command is what the user wrote; nothing of it passes through a shell.
        return subprocess.Popen(  # noqa: S603
            list(command),
            env=dict(start.environment),
            process_group=0,
            stdout=subprocess.DEVNULL if start.silent else None,
            preexec_fn=start.join,  # noqa: PLW1509  one write to an open descriptor, and we have no threads yet
        )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise RequestError(
            f"cannot start {command[0]}: {why}",
            code="no_launcher",
            fix="check that it is installed and on PATH, or write `python -m torch.distributed.run` for torchrun",
        ) from None


def _load_words() -> None:
    from importlib import import_module

    import_module("paritrace.process.stop_facts")


class _Forwarding:
    """Hands signals on to a process group and keeps what was sent; those that come before there is one wait for it."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.sent: list[SentSignal] = []
        self._group = 0
        self._waiting: list[int] = []
        self._before: dict[int, object] = {}

    def __enter__(self) -> _Forwarding:
        for number in FORWARDED:
            if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup: whom we ignore, the child ignores
                self._before[number] = signal.signal(number, self._hear)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # what `signal` gave is what it takes

    def to(self, group: int) -> None:
        _load_words()  # once there is somebody to send to, a handler may not have to import
        self._group = group
        for number in self._waiting:
            self.send(number, "forwarded")

    def send(self, number: int, why: str) -> None:
        """Send to the group, and note it where it arrived."""
        with suppress(ProcessLookupError, PermissionError):  # it has ended, or became somebody else
            os.killpg(self._group, number)
            self._note(number, -self._group, why)

    def note_stop(self, number: int, to: int) -> None:
        """Note a signal that ended a timed-out tree."""
        self._note(number, to, "grace_over" if number == signal.SIGKILL else "timeout")

    def _note(self, number: int, to: int, why: str) -> None:
        from paritrace.process.stop_facts import SentSignal

        self.sent.append(SentSignal(signal=int(number), to=to, why=why, sent_ns=self.clock.monotonic_ns()))

    def _hear(self, number: int, _: FrameType | None) -> None:
        if self._group:
            self.send(number, "forwarded")
        else:
            self._waiting.append(number)
