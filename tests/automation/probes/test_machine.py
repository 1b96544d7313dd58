"""Probes of a machine, against small made-up `/proc`, `/sys` and `/dev` trees."""

from pathlib import Path

import pytest

from paritrace.automation.probes.machine import (
    probe_accelerator,
    probe_boot_id,
    probe_cgroup,
    probe_machine,
    probe_ptrace,
    smallest_step_ns,
)
from paritrace.automation.probes.probe import Availability


def write(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


def test_boot_id(tmp_path: Path) -> None:
    assert probe_boot_id(tmp_path).status is Availability.UNAVAILABLE
    write(tmp_path, "proc/sys/kernel/random/boot_id", "abc\n")
    assert probe_boot_id(tmp_path).value == "abc"


def test_accelerator(tmp_path: Path) -> None:
    assert probe_accelerator(tmp_path).reason == "no device node of an accelerator"
    write(tmp_path, "dev/nvidiactl", "")
    assert probe_accelerator(tmp_path).status is Availability.UNAVAILABLE
    write(tmp_path, "dev/nvidia1", "")
    write(tmp_path, "dev/nvidia0", "")
    assert probe_accelerator(tmp_path).value == "/dev/nvidia0, /dev/nvidia1"


@pytest.mark.parametrize(
    ("scope", "capabilities", "status", "words"),
    [
        (None, "0", Availability.AVAILABLE, "any process of the same user"),
        ("0", "0", Availability.AVAILABLE, "any process of the same user"),
        ("1", "0", Availability.AVAILABLE, "own children"),
        ("1", "80000", Availability.AVAILABLE, "any process"),
        ("2", "0", Availability.UNAVAILABLE, ""),
        ("2", "80000", Availability.AVAILABLE, "any process"),
        ("3", "80000", Availability.UNAVAILABLE, ""),
        ("9", "0", Availability.AVAILABLE, "scope 9"),
    ],
)
def test_ptrace(tmp_path: Path, scope: str | None, capabilities: str, status: Availability, words: str) -> None:
    write(tmp_path, "proc/self/status", f"Name:\tx\nCapEff:\t{capabilities}\n")
    if scope is not None:
        write(tmp_path, "proc/sys/kernel/yama/ptrace_scope", f"{scope}\n")
    found = probe_ptrace(tmp_path)
    assert (found.status, found.value) == (status, words)


@pytest.mark.parametrize("text", [None, "Name:\tx\n", "CapEff:\tnot hex\n"])
def test_ptrace_without_readable_capabilities(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        write(tmp_path, "proc/self/status", text)
    assert probe_ptrace(tmp_path).status is Availability.UNAVAILABLE


def test_cgroup(tmp_path: Path) -> None:
    assert probe_cgroup(tmp_path).status is Availability.UNAVAILABLE
    (tmp_path / "sys/fs/cgroup/memory").mkdir(parents=True)
    assert probe_cgroup(tmp_path).value.startswith("version 1, may")
    write(tmp_path, "sys/fs/cgroup/cgroup.controllers", "cpu memory\n")
    assert probe_cgroup(tmp_path).value.startswith("version 2, may")


def test_clock_moves() -> None:
    assert smallest_step_ns() > 0


def test_every_probe_of_this_machine_has_its_own_name() -> None:
    names = [probe.id for probe in probe_machine()]
    assert len(names) == len(set(names)) == 6
