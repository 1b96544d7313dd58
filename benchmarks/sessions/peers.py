"""The same blows dealt to ranks under torchrun and to Ray actors, as installed and with their defaults."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import ExitStack, redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.sessions.watching import Death, ended, pids_in, watched

ROOT = Path(__file__).parents[2]
SAYS_SO = ("failed (exitcode", "Signal ", "ChildFailedError")  # the agent's words once it has noticed


def under_torchrun(what: str, sign: signal.Signals, *, most: float) -> Death:
    """Two ranks under torchrun, rank 1 is sent `sign`; known: the launcher says so on stderr, or ends."""
    with tempfile.TemporaryDirectory() as name:
        command = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "0")
        launcher = subprocess.Popen(
            [*command, "-m", "benchmarks.sessions.under_torchrun", name, what],
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        said = threading.Event()
        reader = threading.Thread(target=_listen, args=(launcher, said), daemon=True)
        reader.start()
        pids: list[int] = []
        try:
            pids = pids_in(Path(name), 2)
            return watched(
                lambda: os.kill(pids[1], sign),
                lambda: said.is_set() or launcher.poll() is not None,
                pids if sign is signal.SIGKILL else [],  # who is only stopped stays
                most=most,
            )
        finally:
            for pid in (*pids, launcher.pid):
                ended(pid)
            launcher.wait()
            reader.join()


def _listen(launcher: "subprocess.Popen[str]", said: threading.Event) -> None:
    if launcher.stderr is not None:
        for line in launcher.stderr:
            if any(words in line for words in SAYS_SO):
                said.set()


def ray_session() -> Callable[[], None] | None:
    """Start Ray on this machine alone; returns what shuts it down, None where it is not installed or does not start."""
    try:
        ray = _ray()
    except ImportError:
        return None
    held = ExitStack()
    held.enter_context(redirect_stdout(sys.stderr))  # where Ray prints what it thinks of deaths: no part of a table
    try:
        ray.init(num_cpus=2, include_dashboard=False, configure_logging=False, log_to_driver=False)
    except Exception:  # noqa: BLE001  Ray raises a bare one where its own processes are not up in time
        held.close()
        return None

    def end() -> None:
        ray.shutdown()
        held.close()

    return end


def under_ray(what: str, sign: signal.Signals, *, most: float) -> Death:
    """Two actors, rank 1's process is sent `sign`; known: `ray.wait` returns its call; then we kill the others."""
    ray = _ray()
    with tempfile.TemporaryDirectory() as name:
        actors = [_actor().remote() for _ in range(2)]
        calls = [actor.run.remote(name, what, rank) for rank, actor in enumerate(actors)]
        pids: list[int] = []
        try:
            pids = pids_in(Path(name), 2)
            return watched(
                lambda: os.kill(pids[1], sign),
                lambda: _noticed(ray, calls, actors),
                pids if sign is signal.SIGKILL else [],  # who is only stopped stays
                most=most,
            )
        finally:
            for actor in actors:
                ray.kill(actor)
            for pid in pids:
                ended(pid)


def _noticed(ray: Any, calls: list[Any], actors: list[Any]) -> bool:
    done, _ = ray.wait(calls, timeout=0)
    if done:
        for actor in actors:
            ray.kill(actor)
    return bool(done)


def _actor() -> Any:
    return _ray().remote(num_cpus=1, max_restarts=0)(_Rank)


def _ray() -> Any:
    """Ray, an optional extra whose types are not our concern. Raises ImportError where it is not installed."""
    return import_module("ray")


class _Rank:
    """An actor that steps until it is killed."""

    def run(self, folder: str, what: str, rank: int) -> None:
        from benchmarks.sessions.loads import COLLECTIVE, one_step, say_pid

        if what == COLLECTIVE:
            import torch.distributed as dist

            store = f"file://{folder}/store"
            dist.init_process_group("gloo", init_method=store, rank=rank, world_size=2)
        say_pid(Path(folder), rank=rank)
        while True:
            one_step(what, rank=rank, seconds=0.005)

    def echo(self, value: int) -> int:
        return value
