"""Two nodes of torchrun on two hosts in one session: stopped, captured; a host that goes away (SE-13, SE-16)."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.session.hosts.namespaces import ADDRESSES, LINK, Hosts, two_hosts, why_not

ROOT = Path(__file__).parents[3]
LONG_SECONDS = 120.0  # two imports of torch on a machine that is busy
FOUND_WITHIN_SECONDS = 15.0  # the finding comes five seconds after the last heartbeat; a machine may be busy
NOISE = """
import socket, sys
socket.create_connection((sys.argv[1], int(sys.argv[2]))).sendall(bytes((0, 0, 0, 2)) + b"hi")
"""
pytestmark = pytest.mark.slow


@pytest.fixture
def hosts() -> Generator[Hosts]:
    reason = why_not()
    if reason:
        pytest.skip(reason)
    with two_hosts(str(os.getpid())) as found:
        yield found


class Job:
    """A session on the first host, and torchrun with a node on each."""

    def __init__(self, hosts: Hosts, directory: Path) -> None:
        self._hosts = hosts
        self.directory = directory
        self.nodes: list[subprocess.Popen[str]] = []

    def asked(self, verb: str, *words: str) -> Any:
        """The document of a verb of `paritrace session`, asked on the first host."""
        command = (sys.executable, "-m", "paritrace", "session", verb, str(self.directory), *words, "--json")
        done = self._hosts.run(0, *command, cwd=ROOT, timeout=LONG_SECONDS)
        return json.loads(done.stdout)

    def begin(self, host: int) -> None:
        """Start the node of a host."""
        torchrun = ("-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1", "--node-rank", str(host))
        where = ("--master-addr", ADDRESSES[0], "--master-port", "29507", "-m", "tests.session.hosts.reducing")
        settings = {"GLOO_SOCKET_IFNAME": LINK, "PARITRACE_SESSION": str(self.directory), "OMP_NUM_THREADS": "1"}
        with open(self.directory.parent / f"node-{host}.log", "w") as log:
            node = subprocess.Popen(
                self._hosts.inside(host, sys.executable, *torchrun, *where),
                cwd=ROOT,
                env={**os.environ, **settings},
                stdout=log,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        self.nodes.append(node)

    def until(self, holds: Any, seconds: float = LONG_SECONDS) -> Any:
        """The first status that something holds of."""
        deadline = time.monotonic() + seconds
        while not holds(status := self.asked("status")):
            assert time.monotonic() < deadline, status
        return status

    def end(self) -> None:
        for node in self.nodes:
            with suppress(ProcessLookupError):
                os.killpg(node.pid, signal.SIGKILL)
            node.wait()
        with suppress(ValueError, subprocess.TimeoutExpired):
            self.asked("close")


@pytest.fixture
def job(hosts: Hosts, tmp_path: Path) -> Generator[Job]:
    found = Job(hosts, tmp_path / "session")
    try:
        yield found
    finally:
        found.end()


def test_se16_ranks_of_two_hosts_are_one_session_and_a_host_that_goes_away_is_found(hosts: Hosts, job: Job) -> None:
    bounds = ("--bound", "vote=5", "--bound", "fail_stop=3")
    started = job.asked(
        "start", "--engine", "attach", "--ranks", "2", "--listen", f"{ADDRESSES[0]}:0", *bounds, "--detach"
    )
    assert started["turned_away"] == []
    rendezvous = json.loads((job.directory / "rendezvous.json").read_text())
    assert rendezvous["host"] == ADDRESSES[0]
    assert hosts.run(1, sys.executable, "-c", NOISE, ADDRESSES[0], str(rendezvous["port"])).returncode == 0
    refused = job.until(lambda status: status["turned_away"])["turned_away"]
    assert [(one["address"], one["why"], one["rank"]) for one in refused] == [
        (ADDRESSES[1], "it did not say who it is", None)
    ]
    for host in (0, 1):
        job.begin(host)
    job.until(lambda status: (status["step"] or 0) > 3 and status["agreed"])
    stopped = job.asked("stop")
    assert stopped["result"] == "applied"
    assert [one["step"] for one in job.asked("status")["ranks"]] == [stopped["step"]] * 2
    assert job.asked("capture", "2", "--level", "op", "--name", "both")["result"] == "applied"
    job.asked("run", "2", "--wait")
    sessions = json.loads((job.directory / "captures" / "both" / "run.json").read_text())["sessions"]
    assert len(sessions) == 2
    assert job.asked("run", "100000")["result"] == "applied"

    hosts.cut()
    cut = time.monotonic()
    status = job.until(lambda status: status["ranks"][1].get("findings"), FOUND_WITHIN_SECONDS)
    assert time.monotonic() - cut < FOUND_WITHIN_SECONDS
    assert status["ranks"][1]["findings"][0].startswith("unresponsive")
    assert status["ranks"][0]["state"] == "running"
    ended = job.until(lambda status: status["state"] == "error", FOUND_WITHIN_SECONDS)
    assert ended["control"].startswith("disabled")
    assert job.nodes[0].poll() is None, "nobody ended the training of the host that is left"
