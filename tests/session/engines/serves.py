"""A tiny `serve` for the conformance suite of engines: it does what it is told over its line."""

import ctypes
import os
import signal
import sys
import threading
import time
from pathlib import Path
from types import FrameType

from paritrace.process.identity import own_identity
from paritrace.session.engines.layout import stacks_path
from paritrace.session.engines.rendezvous import dialled, rendezvous_in
from paritrace.session.engines.seam import RankLine, RankSpec
from paritrace.session.engines.stacks import dump_on_signal
from paritrace.session.messages import Joined, encoded

LONG_SECONDS = 600  # longer than any test
IDLE_SECONDS = 120.0


def serve(line: RankLine, spec: RankSpec, *, rank: int, local_rank: int) -> int:
    """Join, then take orders until the line is closed."""
    del local_rank
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _not_now)  # what libraries do, and what makes a rank hard to end
    line.send(joined(spec, rank))
    until = time.monotonic() + IDLE_SECONDS
    while (found := line.receive(until - time.monotonic())) is not None and time.monotonic() < until:
        for order in found:
            _obeyed(line, *order.partition(b" ")[::2])
    return 7


def dial_in(folder: str, rank: int, world_size: int) -> int:
    """Be a rank that somebody else started."""
    found = rendezvous_in(Path(folder))
    dump_on_signal(stacks_path(folder, found.generation, rank))
    spec = RankSpec(
        directory=folder,
        session_id=found.session_id,
        workload="none:None",
        arguments={},
        world_size=world_size,
        generation=found.generation,
        job_id=found.job_id,
        token=found.token,
    )
    return serve(dialled(found.host, found.port), spec, rank=rank, local_rank=rank)


def joined(spec: RankSpec, rank: int) -> bytes:
    """The first word of a rank."""
    own = own_identity()
    return encoded(
        Joined(
            generation=spec.generation,
            rank=rank,
            world_size=spec.world_size,
            job_id=spec.job_id,
            token=spec.token,
            pid=own.pid,
            host=own.host,
            boot_id=own.boot_id if isinstance(own.boot_id, str) else None,
            start_ticks=own.start_ticks if isinstance(own.start_ticks, int) else None,
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
