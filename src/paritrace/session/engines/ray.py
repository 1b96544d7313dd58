"""The engine `ray`: one actor per rank on a cluster, which dials in; Ray places, kills, names causes (SE-16)."""

import os
import signal
import sys
import threading
from collections import Counter
from contextlib import suppress
from typing import Any

import msgspec

from paritrace.errors import HostError
from paritrace.process.ray_pool import ADDRESS, require_ray
from paritrace.session.engines.addresses import LOOPBACK, Address
from paritrace.session.engines.dialled import DialledEngine
from paritrace.session.engines.layout import log_name
from paritrace.session.engines.lines import Waker
from paritrace.session.engines.listening import Listener
from paritrace.session.engines.local import SERVE
from paritrace.session.engines.ray_actor import RankActor
from paritrace.session.engines.seam import ExitEvidence, FromEngine, RankSpec

PLACE_SECONDS = 60.0  # a cluster with room starts an actor in some seconds; one without never does
LOOK_SECONDS = 1.0  # how long the thread that waits for ends goes without a look whether it is to end
WORDS = 500  # of what Ray says of a death


class RayEngine(DialledEngine):
    """Ranks are actors of this engine's job. The session's directory must be seen by every node under its path.

    `num_cpus`, `num_gpus`: what each rank takes of the cluster. A cluster that `RAY_ADDRESS` does not name is started
    on this machine, and ends with `close`.
    """

    def __init__(self, *, serve: str = SERVE, num_cpus: float = 1, num_gpus: float = 0) -> None:
        super().__init__()
        self._serve = serve
        self._takes = {"num_cpus": num_cpus, "num_gpus": num_gpus}
        self._ray: Any = None
        self._started = False  # whether the cluster is ours
        self._actors: dict[int, Any] = {}
        self._ends: _Ends | None = None
        self._killed: set[int] = set()
        self._told: set[int] = set()

    @property
    def stops_ranks(self) -> bool:
        return True

    def start(self, spec: RankSpec) -> None:
        """Have the ranks placed and started.

        Raises:
            RequestError: Refused: `missing_extra` where Ray is not installed.
            HostError: Refused: `ranks_not_placed`: the cluster has no room for them; those that were placed are ended.
        """
        self._spec, self._ray = spec, require_ray()
        self._started = not self._ray.is_initialized()
        if self._started:
            self._ray.init(
                num_cpus=None if os.environ.get(ADDRESS) else max(1, int(self._takes["num_cpus"] * spec.world_size)),
                include_dashboard=False,
                log_to_driver=False,
            )
        host = self._ray.util.get_node_ip_address() if os.environ.get(ADDRESS) else LOOPBACK.host
        self._listener = Listener(spec, address=Address(host))
        remote = self._ray.remote(max_restarts=0, max_task_retries=0, **self._takes)(RankActor)
        environment = {**spec.environment, "PYTHONPATH": os.pathsep.join(one or os.getcwd() for one in sys.path)}
        for rank in range(spec.world_size):
            self._actors[rank] = remote.options(runtime_env={"env_vars": environment}).remote()
        self._ends = _Ends(self._ray, self._served(spec, host), self._waker)
        self._ends.start()

    def _served(self, spec: RankSpec, host: str) -> dict[int, Any]:
        """Begin to serve on every rank; returns the reference of each one's end."""
        try:
            nodes = self._ray.get([one.node.remote() for one in self._actors.values()], timeout=PLACE_SECONDS)
        except self._ray.exceptions.RayError as error:
            self.close()
            raise HostError(
                f"Ray has not placed {spec.world_size} ranks within {PLACE_SECONDS:.0f} s: {_first_line(error)}",
                code="ranks_not_placed",
                fix="look at what the cluster has free (`ray status`), or start fewer ranks",
            ) from None
        given, before, references = msgspec.json.encode(spec), Counter[str](), dict[int, Any]()
        for (rank, actor), node in zip(self._actors.items(), nodes, strict=True):
            references[rank] = actor.serve.remote(
                given, self._serve, rank=rank, local_rank=before[node], host=host, port=self._listening().port
            )
            before[node] += 1
        return references

    def receive(self, timeout_seconds: float) -> list[FromEngine]:
        """Return what has come; that a rank is gone is told once, by its line or by Ray, whichever says so first."""
        ends = self._ended()  # looked at first: what an actor wrote before its end is here then
        found = super().receive(timeout_seconds)
        gone = [one.rank for one in found if one.data is None]
        found = [one for one in found if one.data is not None or one.rank not in self._told]
        found += [FromEngine(rank, None) for rank in sorted(ends - self._told - set(gone))]
        self._told |= ends | set(gone)
        return found

    def _ended(self) -> set[int]:
        return set() if self._ends is None else set(self._ends.words)

    def terminate(self, rank: int) -> None:
        """Nothing: the word to leave over the line stands for it, and Ray's workers have their own SIGTERM."""

    def kill(self, rank: int) -> None:
        """End the actor's process as SIGKILL does; nothing once it has ended."""
        if rank in self._actors and rank not in self._ended():
            self._killed.add(rank)
            with suppress(self._ray.exceptions.RayError, ValueError):
                self._ray.kill(self._actors[rank], no_restart=True)

    def exit_evidence(self, rank: int) -> ExitEvidence:
        """Return what is known now: a status of this machine where the kernel tells it, and Ray's own words."""
        one = self._listening().ranks.get(rank)
        wait, killed = None if one is None else one.wait, rank in self._killed
        words = "" if self._ends is None else self._ends.words.get(rank, "")
        return ExitEvidence(
            rank=rank,
            pid=None if one is None else one.joined.pid,
            wait=wait,
            signals_by_us=(signal.SIGKILL,) if killed else (),
            not_reaped=killed and wait is None and not words,
            log=log_name(self._required().generation, rank),
            line_closed=rank in self._told,
            words=words,
        )

    def close(self) -> None:
        """Kill what runs, and let go of everything."""
        for rank in self._actors:
            self.kill(rank)
        if self._ends is not None:
            self._ends.stop()
        if self._listener is not None:
            self._listener.close()
        if self._started and self._ray is not None and self._ray.is_initialized():
            self._ray.shutdown()
        self._actors = {}
        self._waker.close()


class _Ends:
    """Waits on a thread of its own for the ends of actors, of other machines as well, and keeps what Ray says."""

    def __init__(self, ray: Any, references: dict[int, Any], waker: Waker) -> None:
        self.words: dict[int, str] = {}  # by rank, once it has ended; of this thread
        self._ray = ray
        self._left = {reference: rank for rank, reference in references.items()}
        self._waker = waker
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="paritrace-ray-ends", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join(2 * LOOK_SECONDS)

    def _run(self) -> None:
        while self._left and not self._over.is_set():
            done, _ = self._ray.wait(list(self._left), num_returns=1, timeout=LOOK_SECONDS)
            for reference in done:
                self.words[self._left.pop(reference)] = self._words(reference)
                self._waker.wake()

    def _words(self, reference: Any) -> str:
        try:
            return f"left with status {self._ray.get(reference)}"
        except self._ray.exceptions.RayError as error:
            return str(error).strip()[:WORDS]


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
