"""A tiny `serve` for the conformance suite of engines: it does what it is told over its line."""

import ctypes
import os
import signal
import sys
import time
from types import FrameType

from paritrace.process.identity import own_identity
from paritrace.session.engines.seam import RankLine, RankSpec
from paritrace.session.messages import Joined, encoded

LONG_SECONDS = 600  # longer than any test
IDLE_SECONDS = 120.0


def serve(line: RankLine, spec: RankSpec, *, rank: int, local_rank: int) -> int:
    """Join, then take orders until the line is closed."""
    del local_rank
    signal.signal(signal.SIGTERM, _not_now)  # what libraries do, and what makes a rank hard to end
    line.send(joined(spec, rank))
    until = time.monotonic() + IDLE_SECONDS
    while (found := line.receive(until - time.monotonic())) is not None and time.monotonic() < until:
        for order in found:
            _obeyed(line, *order.partition(b" ")[::2])
    return 7


def joined(spec: RankSpec, rank: int, *, job_id: str | None = None, generation: int | None = None) -> bytes:
    """The first word of a rank."""
    own = own_identity()
    return encoded(
        Joined(
            generation=spec.generation if generation is None else generation,
            rank=rank,
            world_size=spec.world_size,
            job_id=spec.job_id if job_id is None else job_id,
            token=spec.token,
            pid=own.pid,
            host=own.host,
            boot_id=str(own.boot_id),
            start_ticks=own.start_ticks if isinstance(own.start_ticks, int) else 0,
        )
    )


def _not_now(_number: int, _: FrameType | None) -> None:
    """A handler that lets the process live."""


def _obeyed(line: RankLine, order: bytes, rest: bytes) -> None:
    match order:
        case b"echo":
            line.send(rest)
        case b"count":
            line.send(str(len(rest)).encode())
        case b"big":
            line.send(b"x" * int(rest))
        case b"say":
            sys.stdout.write(f"out {rest.decode()}\n")
            sys.stderr.write(f"err {rest.decode()}\n")
            line.send(b"said")
        case b"exit":
            os._exit(int(rest))
        case b"raise":
            raise ValueError(rest.decode())
        case b"fork":  # a data loader, which has all that we have open
            if os.fork() == 0:
                time.sleep(LONG_SECONDS)
                os._exit(0)
            line.send(b"forked")
        case b"hold_gil":
            line.send(b"holding")
            _held_with_the_gil()
        case b"block":
            line.send(b"blocking")
            _blocked_in_c()
        case _:
            raise ValueError(order)


def _held_with_the_gil() -> None:
    """A loop of calls that keep the GIL: no thread of Python runs, and no handler either for a long time."""
    sleep = ctypes.PyDLL(None).sleep
    while True:
        sleep(LONG_SECONDS)


def _blocked_in_c() -> None:
    """One call that no signal ends: a mutex locked twice, as a collective that spins looks from outside."""
    mutex = ctypes.create_string_buffer(256)
    lock = ctypes.CDLL(None).pthread_mutex_lock
    lock(mutex)
    lock(mutex)
