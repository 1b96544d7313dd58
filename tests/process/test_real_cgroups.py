"""A real kill by the kernel's out-of-memory killer in a cgroup of our own, where we may make one (RS-7, SC-3)."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from paritrace.evidence.gaps import Gap, ResourceGap
from paritrace.process.cgroup_evidence import CgroupScope, CgroupVersion, Exclusivity, OomCount
from paritrace.process.cgroup_rules import exclusivity, oom_rise
from paritrace.process.cgroups import Cgroups
from paritrace.process.memory_limits import visible_memory_limit
from paritrace.process.own_cgroup import OwnCgroup, make_cgroup
from tests.process.hosts import WAIT_SECONDS, host, until

LIMIT_BYTES = 16 << 20
HUNGRY = "held = bytearray(64 << 20)"
CGROUPS = Cgroups()


def ours() -> CgroupScope:
    scope = CGROUPS.scope_of(os.getpid())
    if isinstance(scope, Gap):
        pytest.skip(f"no memory cgroup is ours: {scope.gap}, {scope.detail}")
    return scope


@pytest.fixture
def own() -> Iterator[OwnCgroup]:
    made = make_cgroup(ours(), name=f"paritrace-test-{os.getpid()}")
    if isinstance(made, Gap):
        pytest.skip(f"no cgroup can be made here: {made.detail}")
    yield made
    assert made.remove(within_seconds=WAIT_SECONDS) is None


def count(scope: CgroupScope) -> OomCount:
    found = CGROUPS.oom_count(scope)
    assert isinstance(found, OomCount), found
    return found


def hungry(own: OwnCgroup) -> int:
    """What the wait status says of a program that needs more than the limit."""
    return subprocess.run(
        [sys.executable, "-S", "-E", "-c", HUNGRY],
        preexec_fn=own.join,
        timeout=WAIT_SECONDS,
        check=False,
    ).returncode


def test_rs7_a_real_kill_raises_the_count_of_its_own_cgroup(own: OwnCgroup) -> None:
    own.limit_memory(LIMIT_BYTES)
    before, above = count(own.scope), count(ours())
    assert hungry(own) == -signal.SIGKILL
    until(lambda: oom_rise(before, count(own.scope)) == 1)
    hierarchical = own.scope.version is CgroupVersion.V2
    assert oom_rise(above, count(ours())) == (1 if hierarchical else 0)  # version 1 counts where the victim was
    assert count(own.scope).oom_kill_local in (1, Gap(ResourceGap.NO_COUNTER))


def test_rs7_a_program_that_fits_raises_nothing(own: OwnCgroup) -> None:
    before = count(own.scope)
    assert hungry(own) == 0
    assert oom_rise(before, count(own.scope)) == 0


def test_rs7_the_limit_that_was_set_is_the_tightest(own: OwnCgroup) -> None:
    own.limit_memory(LIMIT_BYTES)
    found = visible_memory_limit(own.scope)
    assert (found.limit_bytes, found.set_by) == (LIMIT_BYTES, own.scope.path)


def test_rr10_all_that_a_child_starts_is_in_its_cgroup_and_a_stranger_contradicts(own: OwnCgroup) -> None:
    fork = "import os, signal\npid = os.fork()\nif pid: print(pid, flush=True)\nsignal.pause()"
    with host(fork, adopt=own.join) as process:
        members = CGROUPS.members(own.scope)
        assert isinstance(members, frozenset)
        assert process.pid in members
        assert len(members) == 2
        assert exclusivity(members, ours=members, declared=False, own=True) is Exclusivity.VERIFIED
        assert exclusivity(members, ours={process.pid}, declared=False, own=True) is Exclusivity.CONTRADICTED
        assert os.getpid() not in members
        left = own.remove(within_seconds=0)
        assert isinstance(left, Gap)
        assert left.gap is ResourceGap.STILL_POPULATED


def test_rs7_a_removed_cgroup_has_no_count(own: OwnCgroup) -> None:
    assert own.remove(within_seconds=WAIT_SECONDS) is None
    found = CGROUPS.oom_count(own.scope)
    assert isinstance(found, Gap)
    assert found.gap is ResourceGap.SCOPE_CHANGED
