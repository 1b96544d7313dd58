"""One session that is going to be hurt: started, watched from outside, and ended in every path (SE-19)."""

import os
import signal
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Self

from paritrace.clock import SYSTEM, Clock
from paritrace.errors import HostError, Outcome, ParitraceError
from paritrace.session.client import Client, Options
from paritrace.session.commands import Kind, Result
from paritrace.session.coordinator.detaching import start_detached
from paritrace.session.coordinator.opening_request import Opening
from paritrace.session.opening import read_session
from paritrace.session.states import RankState
from paritrace.session.status import Status

LOOKS_EVERY_SECONDS = 0.005  # a process, or the status over HTTP: what is measured is told a hundredth of a second late
ENDLESS_STEPS = 1 << 40  # a run that no rehearsal sees the end of
FIRST_STEPS = 3  # taken before anything is hurt, so that steps and their collectives are under way
CLOSE_SECONDS = 60.0  # what is left of a session has closed by then, or is killed


class Patient:
    """A session of its own, in a directory that stays."""

    def __init__(self, opening: Opening, *, clock: Clock = SYSTEM) -> None:
        self._opening = opening
        self._clock = clock
        self._pids: dict[int, int] = {}
        self.client = Client(opening.directory)
        self.bounds: dict[str, float] = {}

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:  # an interrupt as well: its coordinator is a process of its own, and would stay
            self._end(now=True)
            raise
        return self

    def _start(self) -> None:
        status = start_detached(self._opening, tell=lambda _: None)
        if status.state is RankState.ERROR:
            raise HostError(
                "the workload does not start: " + "; ".join(reason.words for reason in status.error),
                code="rehearsal_stuck",
                fix=f"see {self._opening.directory}/logs; make it start by `paritrace session start` first",
                outcome=Outcome.FAILED,
            )
        self.bounds = {one.name: one.seconds for one in self.client.bounds().bounds}

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._end(now=kind is not None)

    def _end(self, *, now: bool) -> None:
        """Close it, in order or at once; a close that is not through in time is overtaken by one at once."""
        left = self._pids.values()
        for pid in left:
            send(pid, signal.SIGCONT)
        with suppress(ParitraceError):
            closed = None if now else self.client.ask(Kind.CLOSE, {}, Options(timeout_seconds=CLOSE_SECONDS))
            if closed is None or closed.result is not Result.APPLIED:
                self.client.ask(Kind.CLOSE, {"now": True})
        self.seconds_until(lambda: all(is_gone(pid) for pid in left), most=CLOSE_SECONDS)
        for pid in left:
            send(pid, signal.SIGKILL)
        self.client.disconnect()

    def status(self) -> Status:
        """The session at this moment; the process numbers of its ranks are kept."""
        found = self.client.status()
        self._pids |= {one.rank: one.pid for one in found.ranks if one.pid is not None}
        return found

    def take_steps(self) -> None:
        """Begin a run without an end, and see its first steps taken.

        Raises:
            HostError: Failed, `rehearsal_stuck`.
        """
        self.client.command(Kind.RUN, {"steps": ENDLESS_STEPS, "autosave": False})
        if self.seconds_until(self._has_stepped, most=self.bounds["park"]) is None:
            raise HostError(
                f"no {FIRST_STEPS} steps were taken within {self.bounds['park']:g} s",
                code="rehearsal_stuck",
                fix="look into the logs of its ranks, or allow more: --bound park=SECONDS",
                outcome=Outcome.FAILED,
            )

    def _has_stepped(self) -> bool:
        return all(one.step >= FIRST_STEPS for one in self.status().ranks)

    def pid_of(self, rank: int) -> int:
        """The process of a rank. `take_steps` has seen all of them."""
        return self._pids[rank]

    def coordinator(self) -> int:
        """The process of the coordinator."""
        return read_session(Path(self._opening.directory)).owner.pid

    def all_gone(self, but: Iterable[int] = ()) -> bool:
        """Whether no rank is left."""
        return all(is_gone(pid) for rank, pid in self._pids.items() if rank not in set(but))

    def in_error(self) -> bool:
        """Whether the session says that it is in Error."""
        return self.status().state is RankState.ERROR

    def now_ns(self) -> int:
        """The moment of a blow, for `seconds_until`."""
        return self._clock.monotonic_ns()

    def seconds_until(self, condition: Callable[[], bool], *, most: float, since_ns: int | None = None) -> float | None:
        """Seconds from the blow (from now without one) until it holds; None where it does not within `most`."""
        start = self._clock.monotonic_ns() if since_ns is None else since_ns
        while True:
            held = condition()
            seconds = (self._clock.monotonic_ns() - start) / 1e9
            if held or seconds > most:
                return seconds if held else None
            self._clock.sleep(LOOKS_EVERY_SECONDS)


def send(pid: int, number: signal.Signals) -> None:
    """Send a signal; nothing where the process has gone."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def is_gone(pid: int) -> bool:
    """Whether no process of this number runs; one that only waits to be reaped has gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[0] in {"Z", "X"}
