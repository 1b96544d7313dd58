"""Runs the pieces of one task in worker processes of this machine; results come in the order of the pieces (CP-17)."""

import os
import socket
import subprocess
import sys
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from types import TracebackType
from typing import Any, Protocol, TypeVar

from paritrace.errors import HostError, InternalError, Outcome, ParitraceError

Piece = TypeVar("Piece")
Result = TypeVar("Result")

PIECE_DEADLINE_SECONDS = 6 * 3600.0  # no piece comes near: a rank of ten million calls takes minutes
END_SECONDS = 5.0  # a killed process is gone at once, unless the kernel holds it
SERVE = "from paritrace.process.pool import serve; serve({})"
AHEAD = 2  # results per worker that may wait for an earlier one: bounds memory


class Pool(Protocol):
    """Who works: this process, several on this machine, or a cluster. The results are the same."""

    def results(self, work: Callable[[Piece], Result], pieces: Iterable[Piece], /) -> Iterator[Result]:
        """Yield `work(piece)` for each piece, in their order; what it raises is raised here."""
        ...


class OwnProcess:
    """No workers: each piece is worked on when its result is asked for."""

    def results(self, work: Callable[[Piece], Result], pieces: Iterable[Piece], /) -> Iterator[Result]:
        """As `Pool` says."""
        return (work(piece) for piece in pieces)


class LocalPool:
    """`num_workers` processes, started afresh (a fork would share our locks and threads) and ended with the task.

    `work` must be importable by name, pieces and results must pickle.

    Raises, while the results are read:
        HostError: Failed: `worker_died` when a worker ended before its piece was done, `worker_stuck`.
        ParitraceError: what `work` raised.
        InternalError: Failed: anything else that `work` raised, with its traceback.
    """

    def __init__(self, num_workers: int) -> None:
        self._num_workers = num_workers

    def results(self, work: Callable[[Piece], Result], pieces: Iterable[Piece], /) -> Iterator[Result]:
        """As `Pool` says; leaving the iteration, by an interrupt as well, ends every worker."""
        waiting = deque(enumerate(pieces))
        done: dict[int, Any] = {}
        with _Workers(min(self._num_workers, len(waiting)), work) as workers:
            for number in range(len(waiting)):
                while number not in done:
                    while waiting and workers.idle and waiting[0][0] < number + AHEAD * self._num_workers:
                        workers.give(*waiting.popleft())
                    place, result = workers.next_result()
                    done[place] = result
                yield done.pop(number)


class _Worker:
    """One process and our end of the pipe to it; `place` is the piece that it works on, -1 while it is idle."""

    def __init__(self, work: Callable[..., object]) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(  # noqa: S603  our own interpreter and our own code
                [sys.executable, "-c", SERVE.format(theirs.fileno())],
                env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                process_group=0,  # an interrupt at the terminal is for us, who end it
            )
        self.pipe: Connection[Any, Any] = Connection(ours.detach())
        self.place = -1
        self.give(work)

    def give(self, message: object) -> None:
        """Send it; that the process has died is said when its result is waited for."""
        with suppress(OSError):
            self.pipe.send(message)


class _Workers:
    """All workers of one task; none is left when the block is."""

    def __init__(self, number: int, work: Callable[..., object]) -> None:
        self._all: list[_Worker] = []
        try:
            for _ in range(number):
                self._all.append(_Worker(work))
        except BaseException:
            self.end()
            raise

    def __enter__(self) -> "_Workers":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    @property
    def idle(self) -> bool:
        return any(worker.place < 0 for worker in self._all)

    def give(self, place: int, piece: object) -> None:
        """Hand a piece to an idle worker."""
        worker = next(worker for worker in self._all if worker.place < 0)
        worker.place = place
        worker.give(piece)

    def next_result(self) -> tuple[int, object]:
        """Wait for any worker that is not idle; returns which piece it did, and the result."""
        busy = {worker.pipe: worker for worker in self._all if worker.place >= 0}
        ready = wait(list(busy), timeout=PIECE_DEADLINE_SECONDS)
        if not ready:
            raise stuck()
        worker = next(worker for pipe, worker in busy.items() if pipe in ready)
        place, worker.place = worker.place, -1
        try:
            result = worker.pipe.recv()
        except (EOFError, OSError):
            status = f"piece {place + 1}, exit status {_status(worker.process)}"
            raise died(f"worker process {worker.process.pid} ended before it was done", status) from None
        if isinstance(result, ParitraceError):
            raise result
        return place, result

    def end(self) -> None:
        """Kill and reap them all: they hold nothing that another process needs."""
        for worker in self._all:
            worker.process.kill()
        for worker in self._all:
            _status(worker.process)
            worker.pipe.close()


def died(what: str, detail: str) -> HostError:
    """A worker that ended before its piece was done."""
    return HostError(
        f"{what} ({detail}); no result was written",
        code="worker_died",
        fix="look for a lack of memory (dmesg), or give fewer workers: --workers 1",
        outcome=Outcome.FAILED,
    )


def stuck() -> HostError:
    """No worker had a result before the deadline."""
    return HostError(
        f"no worker had a result after {PIECE_DEADLINE_SECONDS:.0f} s; no result was written",
        code="worker_stuck",
        fix="compare fewer ranks or steps at once: --ranks, --steps",
        outcome=Outcome.FAILED,
    )


def _status(process: "subprocess.Popen[bytes]") -> int | None:
    """The status of a process that ends, None if it has not after a while."""
    try:
        return process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        return None


def serve(descriptor: int) -> None:
    """A worker's life: what to do, then pieces in, results or errors out, until the other end is closed."""
    pipe: Connection[Any, Any] = Connection(descriptor)
    with suppress(EOFError, OSError):  # whoever asked is gone
        work: Callable[..., object] = pipe.recv()
        while True:
            pipe.send(_done(work, pipe.recv()))


def _done(work: Callable[..., object], piece: object) -> object:
    try:
        return work(piece)
    except ParitraceError as error:
        return error
    except Exception as error:  # noqa: BLE001  the top of a process: its parent raises what is said here
        told = "".join(traceback.format_exception(error))
        return InternalError(f"in a worker process: {told}", code="internal", fix="report this", outcome=Outcome.FAILED)
