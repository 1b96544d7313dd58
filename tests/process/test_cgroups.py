"""Which cgroup counts a process's kills, what it counted, who is in it and what limits it (RS-7, E-02, E-05, E-06)."""

import os
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from paritrace.evidence.gaps import Gap, ResourceGap
from paritrace.process.cgroup_evidence import CgroupScope, CgroupVersion, Exclusivity, MemoryLimit, OomCount
from paritrace.process.cgroup_rules import exclusivity, oom_rise, worse
from paritrace.process.cgroup_texts import parse_counters, parse_limit
from paritrace.process.cgroups import Cgroups
from paritrace.process.memory_limits import visible_memory_limit
from paritrace.process.own_cgroup import OwnCgroup, make_cgroup
from paritrace.testing.clocks import ManualClock

PID = 42
V1_UNLIMITED = "9223372036854771712\n"
EVENTS = "low 0\nhigh 0\nmax 12\noom {oom}\noom_kill {kills}\noom_group_kill 0\n"


class Machine:
    """A /proc and cgroup file systems of plain files."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.mounts: list[str] = []

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def mount(self, kind: str, point: str, *, top: str = "/", options: str = "rw") -> None:
        (self.root / point).mkdir(parents=True, exist_ok=True)
        self.mounts.append(f"32 31 0:29 {top} {self.root / point} rw,relatime - {kind} cgroup {options}\n")
        self.write("proc/self/mountinfo", "".join(self.mounts))

    def member_of(self, text: str) -> None:
        self.write(f"proc/{PID}/cgroup", text)

    def cgroups(self) -> Cgroups:
        return Cgroups(proc=str(self.root / "proc"), clock=ManualClock())

    def scope(self) -> CgroupScope:
        found = self.cgroups().scope_of(PID)
        assert isinstance(found, CgroupScope), found
        return found


@pytest.fixture
def v2(tmp_path: Path) -> Machine:
    """A pod with two containers, as under Kubernetes: the limit is the pod's (E-02)."""
    machine = Machine(tmp_path)
    machine.mount("cgroup2", "cg")
    machine.member_of("0::/pod/one\n")
    for name, oom, kills in [("cg/pod", 1, 1), ("cg/pod/one", 0, 0), ("cg/pod/two", 0, 1)]:
        machine.write(f"{name}/memory.events", EVENTS.format(oom=oom, kills=kills))
        machine.write(f"{name}/memory.events.local", EVENTS.format(oom=oom, kills=0))
        machine.write(f"{name}/cgroup.type", "domain\n")
        machine.write(f"{name}/cgroup.procs", "")
        machine.write(f"{name}/memory.max", "max\n")
    machine.write("cg/pod/one/cgroup.procs", "42\n43\n")
    return machine


@pytest.fixture
def hybrid(tmp_path: Path) -> Machine:
    """Both versions mounted and the memory controller in version 1, as under older systemd (E-05)."""
    machine = Machine(tmp_path)
    machine.mount("cgroup", "cg/cpu", options="rw,cpu")
    machine.mount("cgroup", "cg/memory", options="rw,memory")
    machine.mount("cgroup2", "cg/unified")
    machine.member_of("9:name=systemd:/\n4:memory:/process_api/8a\n1:cpu,cpuacct:/\n0::/\n")
    machine.write("cg/memory/release_agent", "")
    machine.write("cg/unified/cgroup.procs", "42\n")
    for name in ("cg/memory", "cg/memory/process_api", "cg/memory/process_api/8a"):
        machine.write(f"{name}/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n")
        machine.write(f"{name}/memory.limit_in_bytes", V1_UNLIMITED)
        machine.write(f"{name}/memory.stat", f"cache 5\nhierarchical_memory_limit {V1_UNLIMITED}")
        machine.write(f"{name}/cgroup.procs", "42\n")
    return machine


def counted(machine: Machine, scope: CgroupScope) -> OomCount:
    found = machine.cgroups().oom_count(scope)
    assert isinstance(found, OomCount), found
    return found


def test_e05_the_hybrid_s_counter_is_that_of_version_1_with_its_scope(hybrid: Machine) -> None:
    scope = hybrid.scope()
    assert (scope.version, scope.path) == (CgroupVersion.V1, "/process_api/8a")
    found = counted(hybrid, scope)
    assert (found.source, found.oom_kill, found.oom_kill_local) == ("memory.oom_control", 3, 3)
    assert found.oom == found.oom_group_kill == Gap(ResourceGap.NO_COUNTER)


def test_e05_without_version_1_s_files_there_is_no_count_and_no_zero(hybrid: Machine) -> None:
    hybrid.member_of("0::/\n")
    found = hybrid.cgroups().scope_of(PID)
    assert isinstance(found, Gap)
    assert found.gap is ResourceGap.ROOT_CGROUP


def test_rs7_a_memory_controller_that_is_not_mounted(hybrid: Machine) -> None:
    hybrid.mounts.clear()
    hybrid.mount("cgroup2", "cg/unified")
    found = hybrid.cgroups().scope_of(PID)
    assert found == Gap(ResourceGap.NO_CONTROLLER, "no cgroup v1 hierarchy with /process_api/8a is mounted here")


def test_e02_a_sibling_s_kill_is_in_the_pod_s_count_and_not_in_ours(v2: Machine) -> None:
    ours = counted(v2, v2.scope())
    assert (ours.source, ours.oom_kill, ours.oom_kill_local, ours.oom, ours.oom_group_kill) == (
        "memory.events",
        0,
        0,
        0,
        0,
    )
    v2.member_of("0::/pod\n")
    pod = counted(v2, v2.scope())
    assert (pod.oom_kill, pod.oom_kill_local, pod.oom) == (1, 0, 1)
    assert v2.cgroups().members(pod.scope) == frozenset({42, 43})


def test_rs7_files_that_the_kernel_does_not_have_are_gaps(v2: Machine) -> None:
    (v2.root / "cg/pod/one/memory.events.local").unlink()
    v2.write("cg/pod/one/memory.events", "oom 0\noom_kill 7\n")
    found = counted(v2, v2.scope())
    assert found.oom_kill == 7
    assert found.oom_group_kill == Gap(ResourceGap.NO_COUNTER)
    assert found.oom_kill_local == Gap(ResourceGap.NO_COUNTER, "/pod/one has no memory.events.local")
    v2.write("cg/pod/one/memory.events", "oom 0\n")
    missing = v2.cgroups().oom_count(v2.scope())
    assert missing == Gap(ResourceGap.NO_COUNTER, "memory.events of /pod/one has no oom_kill")


def test_rr10_the_root_is_nobody_s_but_a_container_s_own_top_is_its(v2: Machine) -> None:
    v2.member_of("0::/\n")
    found = v2.cgroups().scope_of(PID)
    assert found == Gap(ResourceGap.ROOT_CGROUP, "cgroup v2 / is the root")
    v2.write("cg/cgroup.type", "domain\n")
    v2.write("cg/memory.events", EVENTS.format(oom=0, kills=2))
    assert counted(v2, v2.scope()).oom_kill == 2


def test_rr10_the_root_of_version_1(hybrid: Machine) -> None:
    hybrid.member_of("4:memory:/\n")
    found = hybrid.cgroups().scope_of(PID)
    assert found == Gap(ResourceGap.ROOT_CGROUP, "cgroup v1 / is the root")


def test_rs7_a_cgroup_that_memory_is_not_enabled_for(v2: Machine) -> None:
    (v2.root / "cg/pod/one/memory.events").unlink()
    found = v2.cgroups().scope_of(PID)
    assert found == Gap(ResourceGap.NO_CONTROLLER, "the memory controller is not enabled for cgroup v2 /pod/one")


def test_rs7_a_bind_mounted_part_of_the_hierarchy(v2: Machine) -> None:
    """As docker mounts it with the host's cgroup namespace: the path is the host's, the files lie at the top."""
    v2.mounts.clear()
    v2.mount("cgroup2", "cg/pod", top="/pod")
    scope = v2.scope()
    assert (scope.path, scope.directory, scope.top) == (
        "/pod/one",
        str(v2.root / "cg/pod/one"),
        str(v2.root / "cg/pod"),
    )
    v2.member_of("0::/../other\n")
    found = v2.cgroups().scope_of(PID)
    assert found == Gap(ResourceGap.NO_CONTROLLER, "the cgroup /../other lies outside our cgroup namespace")


def test_rs7_a_process_that_is_gone_has_no_scope(v2: Machine) -> None:
    found = v2.cgroups().scope_of(77)
    assert isinstance(found, Gap)
    assert found.gap is ResourceGap.UNREADABLE


def test_rs7_another_cgroup_of_the_same_name_voids_the_count(v2: Machine) -> None:
    scope = v2.scope()
    before = counted(v2, scope)
    moved = replace(scope, inode=scope.inode + 1)
    found = v2.cgroups().oom_count(moved)
    assert found == Gap(ResourceGap.SCOPE_CHANGED, "/pod/one is another cgroup now")
    assert v2.cgroups().members(moved) == found
    assert oom_rise(before, replace(before, scope=moved)) == found
    assert visible_memory_limit(moved).limit_bytes == found
    gone = v2.cgroups().oom_count(replace(scope, directory="/nowhere"))
    assert isinstance(gone, Gap)
    assert gone.gap is ResourceGap.SCOPE_CHANGED


def test_rs7_a_rise_is_the_difference_of_two_reads_of_one_source(v2: Machine) -> None:
    before = counted(v2, v2.scope())
    assert oom_rise(before, replace(before, oom_kill=2)) == 2
    assert oom_rise(before, before) == 0
    fell = oom_rise(replace(before, oom_kill=5), before)
    assert fell == Gap(ResourceGap.FELL, "memory.events of /pod/one")
    other = oom_rise(before, replace(before, source="memory.oom_control", oom_kill=9))
    assert isinstance(other, Gap)
    gap = Gap(ResourceGap.ROOT_CGROUP)
    assert oom_rise(gap, before) == oom_rise(before, gap) == gap


def test_rs7_a_count_survives_json(v2: Machine) -> None:
    found = counted(v2, v2.scope())
    assert msgspec.json.decode(msgspec.json.encode(found), type=OomCount) == found
    limit = visible_memory_limit(v2.scope())
    assert msgspec.json.decode(msgspec.json.encode(limit), type=MemoryLimit) == limit


def test_e06_the_tightest_of_the_walk_binds(v2: Machine) -> None:
    scope = v2.scope()
    unlimited = visible_memory_limit(scope)
    assert (unlimited.limit_bytes, unlimited.levels) == ("unlimited", 2)
    assert unlimited.set_by == Gap(ResourceGap.NO_LIMIT)
    v2.write("cg/pod/memory.max", f"{512 << 20}\n")
    v2.write("cg/pod/one/memory.max", f"{600 << 20}\n")
    found = visible_memory_limit(scope)
    assert (found.limit_bytes, found.set_by) == (512 << 20, "/pod")


def test_e06_version_1_s_unlimited_is_no_number_and_its_binding_limit_may_be_unseen(hybrid: Machine) -> None:
    scope = hybrid.scope()
    assert visible_memory_limit(scope).limit_bytes == "unlimited"
    hybrid.write("cg/memory/process_api/memory.limit_in_bytes", "4096\n")
    hybrid.write("cg/memory/process_api/8a/memory.stat", "hierarchical_memory_limit 4096\n")
    found = visible_memory_limit(scope)
    assert (found.limit_bytes, found.set_by) == (4096, "/process_api")
    hybrid.write("cg/memory/process_api/8a/memory.stat", "hierarchical_memory_limit 1024\n")
    unseen = visible_memory_limit(scope)
    assert unseen.limit_bytes == 1024
    assert unseen.set_by == Gap(ResourceGap.UNREADABLE, "set by a cgroup that is not visible here")


def test_rs7_a_limit_that_cannot_be_read_is_a_gap(v2: Machine) -> None:
    v2.write("cg/pod/memory.max", "much\n")
    found = visible_memory_limit(v2.scope()).limit_bytes
    assert isinstance(found, Gap)
    assert found.gap is ResourceGap.UNREADABLE
    for name in ("cg/pod/memory.max", "cg/pod/one/memory.max"):
        (v2.root / name).unlink()
    missing = visible_memory_limit(v2.scope()).limit_bytes
    assert missing == Gap(ResourceGap.NO_CONTROLLER, "/pod/one has no memory.max")


@pytest.mark.parametrize(
    ("text", "limit"), [("max\n", "unlimited"), (V1_UNLIMITED, "unlimited"), ("0\n", 0), ("512\n", 512)]
)
def test_rs7_limits(text: str, limit: object) -> None:
    assert parse_limit(text) == limit


def test_rs7_counters_of_an_unknown_kind_are_left_out() -> None:
    assert parse_counters("oom_kill 3\nnew thing 5\n\nword x\n") == {"oom_kill": 3}


@pytest.mark.parametrize(
    ("members", "declared", "own", "found"),
    [
        ({42}, False, False, Exclusivity.UNKNOWN),
        ({42, 43}, True, False, Exclusivity.DECLARED),
        ({42, 7}, True, False, Exclusivity.CONTRADICTED),
        ({0, 42}, True, False, Exclusivity.CONTRADICTED),
        ({42, 43}, False, True, Exclusivity.VERIFIED),
        (set(), False, True, Exclusivity.VERIFIED),
        ({42, 43}, True, True, Exclusivity.VERIFIED),
        ({42, 7}, False, True, Exclusivity.CONTRADICTED),
        (Gap(ResourceGap.UNREADABLE), True, False, Exclusivity.DECLARED),
        (Gap(ResourceGap.UNREADABLE), False, True, Exclusivity.UNKNOWN),
        (Gap(ResourceGap.UNREADABLE), True, True, Exclusivity.DECLARED),
    ],
)
def test_rr10_exclusivity_is_what_a_look_at_the_members_leaves_of_it(
    members: set[int] | Gap[ResourceGap], declared: bool, own: bool, found: Exclusivity
) -> None:
    assert exclusivity(members, ours={42, 43}, declared=declared, own=own) is found


def test_rr10_two_looks_say_the_worse() -> None:
    order = [Exclusivity.CONTRADICTED, Exclusivity.UNKNOWN, Exclusivity.DECLARED, Exclusivity.VERIFIED]
    for place, one in enumerate(order):
        for other in order[place:]:
            assert worse(one, other) is worse(other, one) is one


def delegated(machine: Machine, name: str) -> None:
    machine.write(f"{name}/cgroup.subtree_control", "cpu memory\n")


def test_rs7_version_2_makes_a_cgroup_only_where_memory_is_handed_on(v2: Machine) -> None:
    scope = v2.scope()
    assert make_cgroup(scope, name="call-1") == Gap(
        ResourceGap.NOT_DELEGATED, "/pod/one hands the memory controller on to none below or beside it"
    )
    delegated(v2, "cg/pod")
    refused = make_cgroup(scope, name="call-1")  # plain files: the kernel would have made its files in it
    assert isinstance(refused, Gap)
    assert refused.detail == "below /pod: No such file or directory"
    assert not (v2.root / "cg/pod/call-1").exists()


def test_rs7_a_name_that_is_taken_is_not_ours(v2: Machine) -> None:
    delegated(v2, "cg/pod")
    (v2.root / "cg/pod/call-1").mkdir()
    found = make_cgroup(v2.scope(), name="call-1")
    assert found == Gap(ResourceGap.NOT_DELEGATED, "below /pod: File exists")
    assert (v2.root / "cg/pod/call-1").is_dir()


def test_rs7_a_cgroup_that_still_has_members_is_left(v2: Machine) -> None:
    clock = ManualClock()
    own = OwnCgroup(v2.scope(), clock=clock)
    found = own.remove(within_seconds=0.05)
    assert isinstance(found, Gap)
    assert found.gap is ResourceGap.STILL_POPULATED
    assert sum(clock.slept_seconds) == pytest.approx(0.05)
    assert os.path.isdir(own.scope.directory)
