"""Ranks of several nodes: agents that meet, nodes of other names and networks, conditions that do not hold (AU-10)."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import warm
from tests.automation.protocol.captures import Protocol, digests, training

pytestmark = pytest.mark.slow
pytest.importorskip("torch")

# Two agents of one rank each, as a scheduler starts one on each node; what stands before an agent is its node.
LAUNCHER = """
import json, os, socket, subprocess, sys
with socket.socket() as free:
    free.bind(("", 0))
    port = free.getsockname()[1]
nodes, address = json.loads(sys.argv[1]), sys.argv[2]
agents = [
    subprocess.Popen([
        *before, sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--node-rank", str(number),
        "--nproc-per-node", "1", "--max-restarts", "0", "--master-addr", address, "--master-port", str(port),
        *[one.replace("{node}", str(number)) for one in sys.argv[3:]],
    ])
    for number, before in enumerate(nodes)
]
status = 0
for _ in agents:
    if os.waitstatus_to_exitcode(os.wait()[1]):
        status = 1
        for agent in agents:  # as a scheduler does: the others would wait for one that is gone
            agent.send_signal(15)
sys.exit(status)
"""


def two_nodes(folder: Path, nodes: list[list[str]], address: str = "127.0.0.1") -> Protocol:
    (folder / "launcher.py").write_text(LAUNCHER)
    python = sys.executable if any(nodes) else warm.python()  # what is forked is in no other namespace than this
    return training(folder, [python, str(folder / "launcher.py"), json.dumps(nodes), address], (0, 1))


def named(name: str) -> list[str]:
    """A node of this name on this machine."""
    return ["unshare", "--uts", "sh", "-c", f'hostname {name} && exec "$@"', "agent"]


def ip(*words: str) -> bool:
    return subprocess.run(["ip", *words], capture_output=True, check=False).returncode == 0


@pytest.fixture
def may_unshare() -> None:
    if shutil.which("unshare") is None or subprocess.run([*named("x"), "true"], check=False).returncode:
        pytest.skip("this user may make no namespaces")


@pytest.fixture
def network(may_unshare: None) -> Iterator[tuple[str, str]]:
    """A network namespace with a link to this one: its name, and the address of this side."""
    name, ours = f"pt{os.getpid()}", f"pv{os.getpid()}"
    third = os.getpid() % 250
    made = ip("netns", "add", name) and ip("link", "add", ours, "type", "veth", "peer", "name", "eth0", "netns", name)
    try:
        if not made:
            pytest.skip("this user may make no network namespaces")
        assert ip("addr", "add", f"10.233.{third}.1/24", "dev", ours)
        assert ip("link", "set", ours, "up")
        assert ip("-n", name, "addr", "add", f"10.233.{third}.2/24", "dev", "eth0")
        assert ip("-n", name, "link", "set", "eth0", "up")
        assert ip("-n", name, "link", "set", "lo", "up")
        yield name, f"10.233.{third}.1"
    finally:
        ip("link", "del", ours)
        ip("netns", "del", name)


def test_au10_two_agents_of_one_machine_are_one_capture(tmp_path: Path) -> None:
    asking = two_nodes(tmp_path, [[], []])
    discovery = asking.result("discover", "2")
    assert [(rank["rank"], rank["calls"] > 0) for rank in discovery["ranks"]] == [(0, True), (1, True)]


def test_au10_nodes_of_other_names_discover_and_trace_and_the_checkout_stays(tmp_path: Path, may_unshare: None) -> None:
    asking = two_nodes(tmp_path, [named("node-a"), named("node-b")])
    before = digests(asking.checkout)
    discovery = asking.result("discover", "2")
    assert [rank["node_id"] for rank in discovery["ranks"]] == ["node-a", "node-b"]
    plan = asking.result("prepare", "2", discovery=discovery)
    traced = asking.result("trace", "2", discovery=discovery, plan=plan)
    assert [rank["node_id"] for rank in traced["ranks"]] == ["node-a", "node-b"]
    assert digests(asking.checkout) == before


def test_au10_nodes_meet_over_a_network(tmp_path: Path, network: tuple[str, str]) -> None:
    name, address = network
    far = ["ip", "netns", "exec", name, *named("node-far")]
    asking = two_nodes(tmp_path, [named("node-near"), far], address)
    assert [rank["node_id"] for rank in asking.result("discover", "2")["ranks"]] == ["node-near", "node-far"]


def test_au10_ranks_that_are_not_unique_are_named(tmp_path: Path) -> None:
    asking = training(tmp_path, [warm.python(), "-c", TWICE], (0, 1))
    error = asking.error("discover", "2")
    assert (error["code"], "by two processes of one rank" in error["message"]) == ("restart_into_capture", True)


def test_au10_a_node_without_the_checkout_is_named(tmp_path: Path, may_unshare: None) -> None:
    checkout = tmp_path / "checkout"
    hidden = ["unshare", "--mount", "sh", "-c", f'mount -t tmpfs none {checkout} && exec "$@"', "agent"]
    asking = two_nodes(tmp_path, [[], hidden])
    error = asking.error("discover", "2")
    assert (error["code"], error["kind"]) == ("checkout_not_visible", "failed")
    assert "rank 1 on" in error["message"]


def test_au10_a_local_root_of_two_nodes_is_named(tmp_path: Path, may_unshare: None) -> None:
    (tmp_path / "boot").write_text("00000000-0000-0000-0000-000000000000\n")
    boot = "/proc/sys/kernel/random/boot_id"
    other = ["unshare", "--mount", "sh", "-c", f'mount --bind {tmp_path}/boot {boot} && exec "$@"', "agent"]
    asking = two_nodes(tmp_path, [named("node-a"), [*other, *named("node-b")]])
    error = asking.error("discover", "2")
    assert (error["code"], error["kind"]) == ("staging_is_shared", "failed")


TWICE = """
import os, subprocess, sys
words = [sys.executable, *sys.argv[1:]]
same = {**os.environ, "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "2"}
ranks = [subprocess.Popen(words, env=same) for _ in range(2)]
sys.exit(max(rank.wait() for rank in ranks))
"""
