"""Pid reuse forced, hidepid mounts, another user's child, 5,000 processes, on a real kernel (SC-3, E-07 to E-09)."""

import os
import shutil
import subprocess
import sys

import pytest

UNSHARE = ("unshare", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc")
WAIT_SECONDS = 120.0  # `run` kills unshare then, and with it the namespace


def why_not() -> str:
    """Why no drill can be run here; empty where it can."""
    if sys.platform != "linux":
        return "not Linux"
    if os.geteuid() != 0:
        return "not root"
    missing = [name for name in ("unshare", "setpriv", "mount") if shutil.which(name) is None]
    if missing:
        return f"without {missing[0]}"
    done = subprocess.run([*UNSHARE, "true"], capture_output=True, text=True, timeout=WAIT_SECONDS, check=False)
    return f"unshare: {done.stderr.strip()}" if done.returncode else ""


WHY_NOT = why_not()
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=f"needs root and namespaces: {WHY_NOT}")


def drill(name: str) -> str:
    done = subprocess.run(
        [*UNSHARE, sys.executable, "-m", "tests.process.root_drills", name],
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_e07_the_number_of_a_host_goes_to_a_stranger() -> None:
    before, after = drill("reused_host").split("; ", 1)
    assert before == "1 processes"
    assert after.startswith("host_exited: process ")
    assert after.endswith(" has ended; its number belongs to another one now")


def test_e08_parent_and_child_are_both_reused_during_the_read() -> None:
    assert drill("reused_family") == "3 processes; 1 processes"


def test_sc3_another_user_s_child_counts_and_its_pss_is_a_gap() -> None:
    assert drill("other_user") == "2 processes, pss unreadable"


def test_e09_hidepid_invisible_hides_a_child_that_lives() -> None:
    found = drill("hidepid_invisible")
    assert found.startswith("unreadable: /proc hides process ")
    assert found.endswith(", which lives")


def test_e09_hidepid_noaccess_refuses_a_child() -> None:
    found = drill("hidepid_noaccess")
    assert found.startswith("unreadable: process ")
    assert "cannot be read: " in found


def test_rs4_a_scan_is_refused_under_hidepid_invisible() -> None:
    assert drill("hidepid_invisible_scan") == "table_hidden: /proc is mounted with hidepid=invisible"


def test_rs10_a_scan_cannot_read_entries_under_hidepid_noaccess() -> None:
    found = drill("hidepid_noaccess_scan")
    assert found.startswith("unreadable: process 1 cannot be read: ")


@pytest.mark.slow
def test_rs4_five_thousand_other_processes_cost_no_read() -> None:
    assert drill("many") == "2 processes; 2 processes; as many reads: True; 5001 processes"
