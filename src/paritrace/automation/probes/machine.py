"""What this machine offers: cores, clocks, boot identity, accelerator, tracing and control groups."""

import os
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from paritrace.automation.probes.probe import Probe, available, unavailable

BOOT_ID = Path("proc/sys/kernel/random/boot_id")
PTRACE_SCOPE = Path("proc/sys/kernel/yama/ptrace_scope")
OWN_STATUS = Path("proc/self/status")
CGROUP = Path("sys/fs/cgroup")
ACCELERATOR_NODES = ("dev/nvidia[0-9]*", "dev/kfd", "dev/accel*")

CAP_SYS_PTRACE = 19  # its bit in CapEff, linux/capability.h
CLOCK_SAMPLES = 1000  # enough to see the smallest step; takes well under a millisecond
PTRACE_WORDS = {"0": "any process of the same user", "1": "own children", "2": "administrators only", "3": "nobody"}


def probe_machine(root: Path = Path("/")) -> Iterator[Probe]:
    """Every probe of the machine; `root` is where `/proc`, `/sys` and `/dev` are looked for."""
    yield available("cores", f"{len(os.sched_getaffinity(0))} usable of {os.cpu_count()}")
    yield available("clock", f"monotonic, smallest step seen {smallest_step_ns()} ns")
    yield probe_boot_id(root)
    yield probe_accelerator(root)
    yield probe_ptrace(root)
    yield probe_cgroup(root)


def smallest_step_ns() -> int:
    """The smallest non-zero difference between two readings of the monotonic clock."""
    readings = [time.monotonic_ns() for _ in range(CLOCK_SAMPLES)]
    steps = (later - earlier for earlier, later in pairwise(readings))
    return min((step for step in steps if step > 0), default=0)


def probe_boot_id(root: Path) -> Probe:
    """The kernel's boot id tells two sessions of one machine apart across a restart (EV-2)."""
    try:
        return available("boot id", (root / BOOT_ID).read_text().strip())
    except OSError as error:
        return unavailable("boot id", f"{error.strerror}: /{BOOT_ID}")


def probe_accelerator(root: Path) -> Probe:
    """Device nodes of an accelerator; torch is not asked, because importing it takes seconds."""
    nodes = sorted(f"/{node.relative_to(root)}" for pattern in ACCELERATOR_NODES for node in root.glob(pattern))
    if nodes:
        return available("accelerator", ", ".join(nodes))
    return unavailable("accelerator", "no device node of an accelerator")


def probe_ptrace(root: Path) -> Probe:
    """Whom this process may trace: what tools beside paritrace (a debugger, a system-call tracer) need."""
    try:
        capabilities = int(_status_field((root / OWN_STATUS).read_text(), "CapEff"), 16)
    except (OSError, ValueError) as error:
        return unavailable("ptrace", f"cannot read own capabilities: {error}")
    scope = (root / PTRACE_SCOPE).read_text().strip() if (root / PTRACE_SCOPE).is_file() else "0"
    privileged = bool(capabilities >> CAP_SYS_PTRACE & 1)
    if scope == "3" or (scope == "2" and not privileged):
        return unavailable("ptrace", f"kernel.yama.ptrace_scope is {scope}: {PTRACE_WORDS[scope]}")
    return available("ptrace", "any process" if privileged else PTRACE_WORDS.get(scope, f"scope {scope}"))


def _status_field(text: str, name: str) -> str:
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key == name:
            return value.strip()
    raise ValueError(f"no field {name}")


def probe_cgroup(root: Path) -> Probe:
    """The version of the control groups, and whether this process may make a group of its own."""
    group = root / CGROUP
    if (group / "cgroup.controllers").is_file():
        version, place = "version 2", group
    elif (group / "memory").is_dir():
        version, place = "version 1", group / "memory"
    else:
        return unavailable("cgroup", f"no control groups at /{CGROUP}")
    can = "may" if os.access(place, os.W_OK) else "may not"
    return available("cgroup", f"{version}, {can} make a group of its own")
