"""Starts a coordinator behind the terminal, and waits until its ranks are ready (SE-2)."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from msgspec import json as msgspec_json

from paritrace.errors import HostError, Outcome, ParitraceError
from paritrace.files import LOCAL
from paritrace.session.client import Client, is_being_reported
from paritrace.session.coordinator.engines import engine_of
from paritrace.session.coordinator.opening_request import Opening
from paritrace.session.coordinator.owning import require_session_or_empty
from paritrace.session.coordinator.serving import checked_bounds
from paritrace.session.directory import LOGS
from paritrace.session.opening import read_session
from paritrace.session.states import RankState
from paritrace.session.status import Status

LOG = f"{LOGS}/coordinator.log"
ASKED_EVERY_SECONDS = 0.1
TAIL_CHARACTERS = 2000  # of what it said before it ended

_CODE = "from paritrace.session.coordinator.detached import main; main()"


def start_detached(opening: Opening, /, *, tell: Callable[[str], None]) -> Status:
    """Start a coordinator in a session of its own, and return the status once its ranks are ready, or in error.

    Raises:
        RequestError: Refused, `bad_bound`, `bad_listen`, `no_such_engine`, `not_a_session`.
        HostError: Failed, `coordinator_not_started`, with what it said; `coordinator_silent` past the bound `start`.
    """
    bounds = checked_bounds(opening.bounds)
    engine_of(opening.engine, listen=opening.listen)
    log = Path(opening.directory, LOG)
    said_before = LOCAL.size(log) if LOCAL.exists(log) else 0
    process = _spawned(opening)
    deadline = time.monotonic() + bounds["join"] + bounds["start"]
    told = ""
    with Client(opening.directory) as session:
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise _not_started(log, said_before)
            status = _status(session, process.pid)
            if status is not None and _is_awaited(status, opening):
                return status
            words = None if status is None else _loading(status)
            if words is not None and words != told:
                told = words
                tell(words)
            time.sleep(ASKED_EVERY_SECONDS)
    raise HostError(
        f"the ranks of {opening.directory} are not ready in time",
        code="coordinator_silent",
        fix=f"look into {opening.directory}/{LOG}; a longer --bound start=S allows more",
        outcome=Outcome.FAILED,
    )


def _spawned(opening: Opening) -> "subprocess.Popen[bytes]":
    log = Path(opening.directory, LOG)
    LOCAL.mkdir(Path(opening.directory))
    require_session_or_empty(Path(opening.directory))
    LOCAL.mkdir(log.parent)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(one or os.getcwd() for one in sys.path)}
    with open(log, "ab", opener=lambda name, flags: os.open(name, flags, 0o600)) as output:
        process = subprocess.Popen(  # noqa: S603  our own interpreter and our own code
            [sys.executable, "-c", _CODE],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            env=environment,
            start_new_session=True,
        )
    assert process.stdin is not None
    with process.stdin as given:
        given.write(msgspec_json.encode(opening))
    return process


def _is_awaited(status: Status, opening: Opening) -> bool:
    """Whether nothing more is waited for. Ranks that a launcher starts come when they come."""
    if opening.engine == "attach":
        return True
    return status.state is not RankState.LOADING and not is_being_reported(status)


def _loading(status: Status) -> str:
    there = sum(one.state is not None for one in status.ranks)
    return f"{there} of {status.world_size} ranks: {status.phase}"


def _status(session: Client, pid: int) -> Status | None:
    """What the new coordinator says; None while it does not answer yet, or the directory still names an earlier one."""
    try:
        if read_session(session.directory).owner.pid != pid:
            return None
        return session.status()
    except ParitraceError:
        return None


def _not_started(log: Path, said_before: int) -> HostError:
    said = LOCAL.read(log)[said_before:].decode("utf-8", "replace")[-TAIL_CHARACTERS:]
    return HostError(
        "the coordinator ended before its ranks were ready",
        code="coordinator_not_started",
        fix="mend what it said, and start it again",
        outcome=Outcome.FAILED,
        details=tuple(line for line in said.splitlines() if line.strip()),
    )
