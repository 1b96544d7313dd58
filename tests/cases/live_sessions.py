"""Real sessions of `Layers`: two ranks without torch, ended in every path."""

import os
import signal
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from paritrace.errors import ParitraceError
from paritrace.session.api import Session
from paritrace.session.states import RankState

DEADLINE_SECONDS = 60.0  # a loaded machine; what is waited for takes well under a second otherwise
LOOKS_EVERY_SECONDS = 0.02
WORKLOAD = "tests.cases.resident_layers:Layers"


@contextmanager
def layers(directory: Path, **arguments: Any) -> Generator[Session]:
    with Session.start(directory, WORKLOAD, ranks=2, arguments=arguments) as session:
        pids = pids_of(session)
        try:
            yield session
        finally:
            with suppress(ParitraceError):
                session.close()
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def pids_of(session: Session) -> list[int]:
    return [one.pid for one in session.status().ranks if one.pid is not None]


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "not in time"
        time.sleep(LOOKS_EVERY_SECONDS)


def in_error(session: Session) -> Callable[[], bool]:
    return lambda: session.status().state is RankState.ERROR


def lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
