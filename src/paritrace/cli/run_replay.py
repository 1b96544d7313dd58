"""`paritrace run --replay FILE`: the workload runs until the calls that FILE names were replayed, then ends (CP-26)."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paritrace.capture.arrival import WhenImported
from paritrace.errors import RequestError
from paritrace.evidence.replays import REQUEST_FORMAT, ReplayRequest
from paritrace.files import LOCAL

if TYPE_CHECKING:
    from paritrace.capture.pytorch.replaying import Replayer
    from paritrace.capture.session import Capture


def read_request(path: Path) -> ReplayRequest:
    """The request in a file.

    Raises:
        RequestError: Refused, code `bad_replay_request`.
        HostError: Refused: it cannot be read.
    """
    import msgspec

    try:
        found = msgspec.json.decode(LOCAL.read(path), type=ReplayRequest)
    except (msgspec.DecodeError, RecursionError) as error:  # the last: nested too deeply
        raise _bad(path, str(error)) from error
    if found.format != REQUEST_FORMAT:
        raise _bad(path, f"its format is {found.format!r}")
    return found


def attach(capture: Capture, request: ReplayRequest, *, end: Callable[[], None]) -> None:
    """Replay in this process once it imports torch. `end` closes the capture; the process ends right after it.

    It ends without the workload's own handlers, so that none of them saves what half a training left.
    """
    attached = _Attached(capture, request, end=end)
    atexit.register(attached.workload_ended)  # after `end` was registered, so before it is called
    attached.arrival.install()


class _Attached:
    def __init__(self, capture: Capture, request: ReplayRequest, *, end: Callable[[], None]) -> None:
        self._capture = capture
        self._request = request
        self._end = end
        self._process = os.getpid()
        self._replayer: Replayer | None = None
        self.arrival = WhenImported("torch", self._torch_arrived)

    def workload_ended(self) -> None:
        """The workload came to its own end: what was not reached by then has its answer."""
        if os.getpid() == self._process and self._replayer is not None:
            self._replayer.ends("before the program ended")

    def _torch_arrived(self, _: Any) -> None:
        from paritrace.capture.pytorch.replaying import Replayer

        observer = self._capture.observer
        if observer is None:  # the capture said why
            return
        rank = self._capture.session.rank
        self._replayer = Replayer(self._request, rank=rank, observed=observer, done=self._done)
        self._replayer.install()

    def _done(self) -> None:
        _meet_other_ranks(self._request)
        self._end()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def _meet_other_ranks(request: ReplayRequest) -> None:
    """Wait for ranks that still replay: one that leaves early takes the others' collectives with it."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return
    ranks = {task.rank for task in request.tasks}
    if not ranks or ranks == set(range(distributed.get_world_size())):
        distributed.barrier()


def _bad(path: Path, why: str) -> RequestError:
    return RequestError(
        f"{path} is no replay request: {why}",
        code="bad_replay_request",
        fix="leave --replay to `paritrace judge`, `isolate` and `capsule`, which write its file",
    )
