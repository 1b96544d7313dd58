"""Two network namespaces of this machine as two hosts, joined by one link that can be taken down (SE-16)."""

import os
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

ADDRESSES = ("10.213.7.1", "10.213.7.2")
LINK = "link0"  # of the same name on both


class Hosts:
    """`names[0]` and `names[1]`."""

    def __init__(self, tag: str) -> None:
        self.names = (f"pt-{tag}-0", f"pt-{tag}-1")

    def inside(self, host: int, *words: str) -> tuple[str, ...]:
        """Return a command line that runs words on a host."""
        return ("ip", "netns", "exec", self.names[host], *words)

    def run(self, host: int, *words: str, **more: Any) -> "subprocess.CompletedProcess[str]":
        """Run a command on a host to its end."""
        return subprocess.run(self.inside(host, *words), capture_output=True, text=True, check=False, **more)

    def cut(self) -> None:
        """Take the link of the second host down: nothing arrives any more, and nobody is told."""
        _ip("-n", self.names[1], "link", "set", LINK, "down")


def why_not() -> str:
    """Why there can be no two hosts here; empty where there can."""
    if shutil.which("ip") is None:
        return "iproute2 is not installed (`ip netns`)"
    name = f"pt-try-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if made.returncode:
        return f"network namespaces cannot be made here: {made.stderr.strip()}"
    subprocess.run(["ip", "netns", "del", name], check=False)
    return ""


@contextmanager
def two_hosts(tag: str) -> Generator[Hosts]:
    """Two hosts while the block runs."""
    hosts = Hosts(tag)
    try:
        for name in hosts.names:
            _ip("netns", "add", name)
        first, second = hosts.names
        _ip("-n", first, "link", "add", LINK, "type", "veth", "peer", "name", LINK, "netns", second)
        for name, address in zip(hosts.names, ADDRESSES, strict=True):
            _ip("-n", name, "addr", "add", f"{address}/24", "dev", LINK)
            _ip("-n", name, "link", "set", LINK, "up")
            _ip("-n", name, "link", "set", "lo", "up")
        yield hosts
    finally:
        for name in hosts.names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)
