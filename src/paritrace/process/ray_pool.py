"""Runs the pieces of one task on a Ray cluster; results come in the order of the pieces (CP-17, ADR 0017)."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any

from paritrace.errors import ParitraceError, RequestError
from paritrace.process.pool import PIECE_DEADLINE_SECONDS, Piece, Result, died, stuck

ADDRESS = "RAY_ADDRESS"  # Ray's own variable: without it a cluster of this machine alone is started


class RayPool:
    """At most `num_workers` pieces at once, on the cluster that `RAY_ADDRESS` names or on this machine.

    Every node must see the run directories under the same paths and have paritrace installed.

    Raises, while the results are read:
        RequestError: Refused: `missing_extra` where Ray is not installed.
        HostError: Failed: `worker_died` when Ray lost a worker, `worker_stuck`.
        ParitraceError: what `work` raised.
    """

    def __init__(self, num_workers: int) -> None:
        self._num_workers = num_workers

    def results(self, work: Callable[[Piece], Result], pieces: Iterable[Piece], /) -> Iterator[Result]:
        """As `Pool` says; leaving the iteration cancels what runs."""
        ray = require_ray()
        started = not ray.is_initialized()
        if started:
            ray.init(num_cpus=_cpus(self._num_workers), include_dashboard=False, log_to_driver=False)
        try:
            yield from _in_order(ray, work, pieces, self._num_workers)
        finally:
            if started:
                ray.shutdown()


def require_ray() -> Any:
    """Ray's module, loaded only here; refused with the way to install it where it is missing."""
    try:
        return import_module("ray")
    except ImportError:
        raise RequestError(
            "--engine ray needs Ray, which is not installed",
            code="missing_extra",
            fix="pip install 'paritrace[ray]', or use the local engine: --engine local --workers N",
        ) from None


def _cpus(num_workers: int) -> int | None:
    """Of a cluster that we start; of one that runs already Ray knows them and takes no number."""
    return None if os.environ.get(ADDRESS) else num_workers


def _in_order(ray: Any, work: Callable[[Piece], Result], pieces: Iterable[Piece], num_workers: int) -> Iterator[Result]:
    remote = ray.remote(max_retries=0)(work)  # the same piece would meet the same fault
    running: deque[Any] = deque()
    try:
        for piece in pieces:
            running.append(remote.remote(piece))
            if len(running) >= num_workers:
                yield _result(ray, running.popleft())
        while running:
            yield _result(ray, running.popleft())
    finally:
        for left in running:
            ray.cancel(left, force=True)


def _result(ray: Any, reference: Any) -> Any:
    try:
        return ray.get(reference, timeout=PIECE_DEADLINE_SECONDS)
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        if isinstance(cause, ParitraceError):
            raise cause from None
        raise
    except ray.exceptions.GetTimeoutError:
        raise stuck() from None
    except ray.exceptions.RayError as error:
        raise died("Ray lost a worker before it was done", str(error).splitlines()[0]) from None
