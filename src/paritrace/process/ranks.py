"""Runs the ranks of one small job on this machine, each a child process; can kill one of them, as happens to ranks."""

import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from msgspec import Struct

from paritrace.errors import HostError, Outcome
from paritrace.process.children import Finished

POLL_SECONDS = 0.02  # how often the ranks are looked at: far shorter than a step of a training


class Kill(Struct, frozen=True):
    """Send SIGKILL to this rank once `text` stands in what it printed."""

    rank: int
    text: str


def run_ranks(
    command: Sequence[str],
    *,
    num_ranks: int,
    directory: Path,
    environment: Mapping[str, str],
    deadline_seconds: float,
    kill: Kill | None = None,
) -> tuple[Finished, ...]:
    """Run `command` once for each rank, with the variables that launchers set, and wait for all of them.

    Raises HostError (Failed) when one has not ended after `deadline_seconds`: all are killed then.
    """
    started = time.monotonic()
    shared = {
        **environment,
        "WORLD_SIZE": str(num_ranks),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(_free_port()),
    }
    with ExitStack() as stack:
        printed = [_temporary(stack) for _ in range(num_ranks)]
        complained = [_temporary(stack) for _ in range(num_ranks)]
        ranks = [
            subprocess.Popen(  # noqa: S603  the command is built by the caller, from no outside text
                list(command),
                cwd=directory,
                env={**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)},
                stdin=subprocess.DEVNULL,
                stdout=printed[rank],
                stderr=complained[rank],
            )
            for rank in range(num_ranks)
        ]
        try:
            ended = _all_end(ranks, printed, kill=kill, until=started + deadline_seconds)
        finally:
            for rank in ranks:
                rank.kill()  # does nothing to one that has ended
                rank.wait()
        if not ended:
            raise HostError(
                f"`{' '.join(command)}` had not ended on every rank after {deadline_seconds:.0f} s; all were killed",
                code="child_too_slow",
                fix="run it by hand to see where it waits, on a machine with less other load",
                outcome=Outcome.FAILED,
            )
        seconds = time.monotonic() - started
        return tuple(
            Finished(status=rank.returncode, stdout=_text(out), stderr=_text(err), seconds=seconds)
            for rank, out, err in zip(ranks, printed, complained, strict=True)
        )


def _all_end(
    ranks: Sequence["subprocess.Popen[bytes]"], printed: Sequence[IO[bytes]], *, kill: Kill | None, until: float
) -> bool:
    waiting = kill
    while any(rank.poll() is None for rank in ranks):
        if time.monotonic() >= until:
            return False
        if waiting is not None and waiting.text in _text(printed[waiting.rank]):
            ranks[waiting.rank].kill()
            waiting = None
        time.sleep(POLL_SECONDS)
    return True


def _temporary(stack: ExitStack) -> IO[bytes]:
    """A file that a child appends to, wherever its parent reads: both share one place in it."""
    return stack.enter_context(tempfile.TemporaryFile("a+b"))


def _text(file: IO[bytes]) -> str:
    data = os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0)
    return data.decode("utf-8", "surrogateescape")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
