"""The same blows dealt to ranks of a session, and how quickly commands and status go while its ranks are busy."""

import os
import random
import signal
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Timer
from types import SimpleNamespace
from typing import Any, cast

from msgspec import Struct

from benchmarks.sessions.loads import COLLECTIVE, PLAIN, Load
from benchmarks.sessions.watching import Death, ended, pids_in, seconds_until, watched
from paritrace.errors import ParitraceError
from paritrace.session.api import Session
from paritrace.session.client import Options
from paritrace.session.directory import JOURNAL
from paritrace.session.opening import read_journal

ENDLESS_STEPS = 1 << 40
STEP_SECONDS = 0.005
MOST_HOLD_SECONDS = 0.02  # words to one rank are held up so long at most while a stop goes out
WORKLOAD = f"{Load.__module__}:{Load.__name__}"


class Running(Struct, frozen=True):
    """A session whose two ranks step."""

    session: Session
    pids: list[int]


@contextmanager
def running(what: str, *, seconds: float = STEP_SECONDS, steps: int = ENDLESS_STEPS) -> Generator[Running]:
    """Two ranks that step; whatever is left of them is ended behind."""
    with tempfile.TemporaryDirectory() as name:
        arguments = {"folder": name, "what": what, "seconds": seconds}
        with Session.start(Path(name, "S"), WORKLOAD, ranks=2, arguments=arguments) as session:
            pids: list[int] = []
            try:
                session.run(steps, autosave=False)
                pids = pids_in(Path(name), 2)
                yield Running(session, pids)
            finally:
                for pid in pids:
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGCONT)
                with suppress(ParitraceError):
                    session.close()
                for pid in pids:
                    ended(pid)


def death(what: str, sign: signal.Signals, *, most: float) -> Death:
    """Rank 1 is sent `sign`; known: the failure stands in the journal, or the finding of one that was only stopped."""
    word = b'"what":"failure"' if sign is signal.SIGKILL else b'"finding":"unresponsive"'
    with running(what) as one:
        journal = one.session.directory / JOURNAL
        return watched(
            lambda: os.kill(one.pids[1], sign),
            lambda: word in journal.read_bytes(),
            one.pids if sign is signal.SIGKILL else [],  # who is only stopped stays
            most=most,
        )


class Stops(Struct, frozen=True):
    """Seconds of each stop that was applied; `apart`: how many left ranks at unlike steps or were not applied."""

    seconds: list[float]
    apart: int


def stops(number: int, *, seed: int = 0) -> Stops:
    """Stop and go on, again and again, between all-reduces, while words to one rank are held up."""
    drawn = random.Random(seed)
    taken: list[float] = []
    apart = 0
    with running(COLLECTIVE) as one:
        for _ in range(number):
            pid = one.pids[drawn.randrange(2)]
            held = drawn.uniform(0.0, MOST_HOLD_SECONDS)
            os.kill(pid, signal.SIGSTOP)
            Timer(held, os.kill, (pid, signal.SIGCONT)).start()
            started = time.monotonic()
            one.session.stop()
            taken.append(time.monotonic() - started - held)
            apart += len({rank.step for rank in one.session.status().ranks}) != 1
            one.session.run(ENDLESS_STEPS, autosave=False)
    return Stops(taken, apart)


class Asked(Struct, frozen=True):
    """Seconds of each status over HTTP; of each command until it was taken up (it stands in the journal, on disk), and
    until all ranks had done it at one step and gone on."""

    status: list[float]
    taken_up: list[float]
    done: list[float]


def asked(number: int) -> Asked:
    """Ask for the status, and for a change at an agreed step, again and again, while both ranks are busy."""
    status: list[float] = []
    begun: dict[str, int] = {}
    done: list[float] = []
    with running(COLLECTIVE) as one:
        for _ in range(number):
            started = time.monotonic()
            one.session.status()
            status.append(time.monotonic() - started)
        for place in range(number // 4):
            begun[f"c{place}"] = time.time_ns()
            started = time.monotonic()
            one.session.configure({"x": place}, options=Options(id=f"c{place}"))
            done.append(time.monotonic() - started)
        lines = read_journal(one.session.directory).lines
    took = {str(line.facts["id"]): line.unix_ns for line in lines if line.what == "command"}
    return Asked(status, [(took[name] - at) / 1e9 for name, at in begun.items()], done)


def step_seconds(steps: int) -> tuple[float, float]:
    """Seconds of one step that does nothing: in a session, and in a bare loop of the same method in this process."""
    with running(PLAIN, seconds=-1.0, steps=steps) as one:
        seconds_until(lambda: one.session.status().target is None, most=600.0)
        lines = read_journal(one.session.directory).lines
    ends = {str(line.facts.get("event")): line.unix_ns for line in lines if line.what == "run"}
    with tempfile.TemporaryDirectory() as name:
        bare = Load(name, PLAIN, -1.0)
        bare.says_nothing()
        context = cast("Any", SimpleNamespace(rank=0))  # all that this load asks its context for
        started = time.perf_counter()
        for n in range(steps):
            bare.step(context, n)
        loop = time.perf_counter() - started
    return (ends["ended"] - ends["admitted"]) / 1e9 / steps, loop / steps
