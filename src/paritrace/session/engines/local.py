"""The engine `local`: a process per rank on this machine, its line and its end waited for together (SE-16)."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import IO

import msgspec

from paritrace.errors import HostError, InternalError
from paritrace.process.cgroups import Cgroups
from paritrace.process.stop_facts import Exited, Signalled
from paritrace.session.engines.kill_counts import KillCounts
from paritrace.session.engines.layout import log_name, log_path, stacks_path
from paritrace.session.engines.lines import Line, Waker, readable_within
from paritrace.session.engines.local_child import CHILD
from paritrace.session.engines.seam import Engine, ExitEvidence, FromEngine, RankSpec
from paritrace.session.engines.stacks import stacks_of

SERVE = "paritrace.session.rank.serving:serve"
REAP_SECONDS = 2.0  # a killed process is gone at once, unless a driver holds it; then nobody waits for it
END_SECONDS = 0.1  # a process that ends closes its line some milliseconds before its status can be taken
_LOG_MODE = 0o600  # it holds the workload's own text (SE-22)


class _Rank:
    """One process and our end of its line."""

    def __init__(self, process: "subprocess.Popen[bytes]", line: Line) -> None:
        self.process = process
        self.line = line
        self.end = os.pidfd_open(process.pid)  # readable at its end, when its exit status can be taken, too
        self.signals: list[int] = []
        self.told = False  # that its end, or that of its line, has been brought

    @property
    def wait(self) -> Exited | Signalled | None:
        """How it ended. Whatever it started in its group and left behind ends with it, however that came about."""
        if self.process.returncode is None:
            if not readable_within((self.end,), 0):
                return None
            self._send(signal.SIGKILL)  # before its exit status is taken: until then its number is nobody else's
        code = self.process.wait()
        return Exited(code) if code >= 0 else Signalled(-code)

    def signal(self, number: int) -> None:
        """Send to the rank's group, so that its data loaders hear it as well; nothing once it has ended."""
        if self.wait is None:
            self.signals.append(number)
            self._send(number)

    def _send(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)

    def terminate(self) -> None:
        """SIGTERM, and what makes a stopped one hear it."""
        if self.wait is None:
            self.signal(signal.SIGTERM)
            self._send(signal.SIGCONT)

    def close(self) -> None:
        self.line.close()
        os.close(self.end)


class LocalEngine(Engine):
    """Ranks are children, started afresh from the main thread, since the parent-death signal follows a thread.

    `serve`: what a rank runs, by import path.
    """

    def __init__(self, *, serve: str = SERVE) -> None:
        self._serve = serve
        self._spec: RankSpec | None = None
        self._ranks: dict[int, _Rank] = {}
        self._waker = Waker()
        self._kills = KillCounts(Cgroups())

    @property
    def stops_ranks(self) -> bool:
        return True

    def start(self, spec: RankSpec) -> None:
        """Start every rank.

        Raises:
            HostError: Refused: `child_not_started`; those that were started are ended.
            InternalError: Refused: `off_main_thread`.
        """
        if threading.current_thread() is not threading.main_thread():
            raise InternalError("ranks are started from the main thread", code="off_main_thread", fix="report this")
        self._spec = spec
        self._kills.begin(os.getpid())
        try:
            for rank in range(spec.world_size):
                self._ranks[rank] = _started(spec, rank, self._serve)
        except OSError as error:
            self.close()
            raise HostError(
                f"cannot start a rank: {error.strerror}",
                code="child_not_started",
                fix="check that processes can be started and the session's directory can be written here",
            ) from None

    def send(self, rank: int, data: bytes) -> bool:
        """Write to a rank. False where its line is closed, or was stuck: it is closed then."""
        try:
            self._ranks[rank].line.send(data)
        except OSError:
            return False
        return True

    def receive(self, timeout_seconds: float) -> list[FromEngine]:
        """Return what has come; that a rank has ended is told once, after the last that it wrote."""
        waited = {self._waker.fileno()}
        for one in self._ranks.values():
            if not one.told:
                waited |= {one.end, one.line.fileno()} if one.line.is_open() else {one.end}
        readable_within(waited, 0 if self._stuck() else timeout_seconds)
        self._waker.rest()
        return [found for rank, one in self._ranks.items() if not one.told for found in _brought(rank, one)]

    def _stuck(self) -> bool:
        """Whether a line was closed by us while its rank lives: to be told at once."""
        return any(not one.told and not one.line.is_open() for one in self._ranks.values())

    def wake(self) -> None:
        self._waker.wake()

    def dump_stacks(self, ranks: Collection[int]) -> dict[int, str]:
        spec = self._required()
        living = {rank: self._ranks[rank].process.pid for rank in ranks if self._ranks[rank].wait is None}
        return stacks_of(
            {rank: (pid, stacks_path(spec.directory, spec.generation, rank)) for rank, pid in living.items()}
        )

    def terminate(self, rank: int) -> None:
        """SIGTERM, and SIGCONT for one that is stopped, so that it can hear it."""
        self._ranks[rank].terminate()

    def kill(self, rank: int) -> None:
        """SIGKILL for the rank and what it started in its group."""
        self._ranks[rank].signal(signal.SIGKILL)

    def exit_evidence(self, rank: int) -> ExitEvidence:
        """Return what is known now. `not_reaped`: it was sent SIGKILL and has no wait status yet."""
        one, wait = self._ranks[rank], self._ranks[rank].wait
        return ExitEvidence(
            rank=rank,
            pid=one.process.pid,
            wait=wait,
            signals_by_us=tuple(one.signals),
            not_reaped=wait is None and signal.SIGKILL in one.signals,
            log=log_name(self._required().generation, rank),
            cgroup_oom_kills=self._kills.rise(),
            line_closed=not one.line.is_open(),
        )

    def close(self) -> None:
        """Kill ranks that still run, wait for them, `REAP_SECONDS` for all, and let go of everything."""
        for rank in self._ranks:
            self.kill(rank)
        until = time.monotonic() + REAP_SECONDS
        for one in self._ranks.values():
            readable_within((one.end,), until - time.monotonic())
            _ = one.wait
            one.close()
        self._ranks = {}
        self._waker.close()

    def _required(self) -> RankSpec:
        if self._spec is None:
            raise InternalError("the engine was not started", code="internal", fix="report this")
        return self._spec


def _brought(rank: int, one: _Rank) -> list[FromEngine]:
    ended = one.wait is not None  # looked at first: what it wrote before its end is here then
    found = [FromEngine(rank, data) for data in one.line.arrived()]
    if ended or not one.line.is_open():
        readable_within((one.end,), END_SECONDS)
        one.told = True
        found.append(FromEngine(rank, None))
    return found


def _started(spec: RankSpec, rank: int, serve: str) -> _Rank:
    ours, theirs = socket.socketpair()
    log = log_path(spec.directory, spec.generation, rank)
    log.parent.mkdir(parents=True, exist_ok=True)
    code = CHILD.format(descriptor=theirs.fileno(), rank=rank, parent=os.getpid(), serve=serve)
    with theirs, _logged(log) as output, tempfile.TemporaryFile() as given:
        given.write(msgspec.json.encode(spec))
        given.seek(0)
        process = subprocess.Popen(  # noqa: S603  our own interpreter and our own code
            [sys.executable, "-c", code],
            env=_environment(spec),
            stdin=given,
            stdout=output,
            stderr=output,
            pass_fds=(theirs.fileno(),),
            process_group=0,  # an interrupt at the terminal is for the coordinator, who ends the ranks
        )
    return _Rank(process, Line(ours))


def _logged(path: Path) -> IO[bytes]:
    return open(path, "ab", opener=lambda name, flags: os.open(name, flags, _LOG_MODE))


def _environment(spec: RankSpec) -> dict[str, str]:
    """Ours, so that modules are found as here; unbuffered, so that the last lines of a killed rank are in its log."""
    path = os.pathsep.join(one or os.getcwd() for one in sys.path)
    return {**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", **spec.environment}
