"""What a tree adds up to, who left its place, and what two snapshots differ by (RS-1, RS-6, RS-8)."""

import pickle

import msgspec
import pytest
from msgspec.structs import replace

from paritrace.errors import Outcome
from paritrace.evidence.gaps import Gap, ResourceGap, RunGap
from paritrace.process.observing import TreeObserver, observed_host, this_machine
from paritrace.process.resources import (
    ResourceObservationUnavailable,
    ResourceObservationUnsupported,
    ResourceSnapshot,
    cpu_seconds_between,
)
from paritrace.testing.clocks import ManualClock
from paritrace.testing.process_tables import INIT, ScriptedTable

HOST = 10


@pytest.fixture
def table() -> ScriptedTable:
    made = ScriptedTable()
    made.start(INIT, 0)
    made.start(HOST, cpu=1.0, resident=1000)
    made.start(11, HOST, cpu=2.0, resident=500)
    return made


def observer(
    table: ScriptedTable, *, pss: bool = False, lineage: bool = False, adopter: int | None = None
) -> TreeObserver:
    clock = ManualClock()
    host = observed_host(table, HOST, subject="runtime-1", clock=clock)
    return TreeObserver(table, host, clock=clock, pss=pss, lineage=lineage, adopter=adopter)


def test_rs1_sums_of_the_live_and_cpu_of_zombies_too(table: ScriptedTable) -> None:
    table.start(12, HOST, cpu=4.0, resident=900)
    table.exit(12)
    found = observer(table).snapshot()
    assert found.subject == "runtime-1"
    assert found.started_at == "2025-11-29T07:06:38.000Z"  # two moments of the table before
    assert found.observed_at == "2025-11-29T07:06:40.000Z"
    assert found.host.pid == HOST
    assert (found.resident_memory_bytes, found.process_count, found.cpu_time_seconds) == (1500, 2, 7.0)
    assert (
        found.pss_bytes == found.subreaper == found.reparented == found.other_session == Gap(ResourceGap.NOT_COLLECTED)
    )


def test_rs1_pss_only_when_every_process_shows_it(table: ScriptedTable) -> None:
    assert observer(table, pss=True).snapshot().pss_bytes == 750
    original = table.pss_bytes
    table.pss_bytes = lambda pid: Gap(ResourceGap.UNREADABLE, "smaps_rollup") if pid == 11 else original(pid)  # type: ignore[method-assign]
    found = observer(table, pss=True).snapshot()
    assert found.pss_bytes == Gap(ResourceGap.UNREADABLE, "smaps_rollup")
    assert found.resident_memory_bytes == 1500


def test_rs1_exited_descendants_count_through_whoever_waited_for_them(table: ScriptedTable) -> None:
    table.end(11)
    assert observer(table).snapshot().cpu_time_seconds == 3.0


def test_rs11_the_final_snapshot_is_a_value_or_a_gap(table: ScriptedTable) -> None:
    watching = observer(table)
    assert isinstance(watching.final(), ResourceSnapshot)
    table.end(HOST)
    assert watching.final() == Gap(ResourceGap.HOST_EXITED, "process 10 has ended")
    with pytest.raises(ResourceObservationUnavailable, match="process 10 has ended") as caught:
        watching.snapshot()
    assert caught.value.outcome is Outcome.REFUSED
    assert pickle.loads(pickle.dumps(caught.value)).gap == caught.value.gap


def test_rs2_a_host_that_is_gone_or_another_user_s_cannot_be_observed(table: ScriptedTable) -> None:
    with pytest.raises(ResourceObservationUnavailable, match="process 77 has ended"):
        observed_host(table, 77, subject="x")
    table.deny(HOST)
    with pytest.raises(ResourceObservationUnavailable, match="another user"):
        observed_host(table, HOST, subject="x")


@pytest.mark.parametrize(("platform", "name"), [("win32", "Windows"), ("freebsd14", "freebsd14")])
def test_rs5_other_platforms_are_unsupported_by_name(platform: str, name: str) -> None:
    with pytest.raises(ResourceObservationUnsupported, match=name) as caught:
        this_machine(platform)
    assert caught.value.gap.gap is ResourceGap.UNSUPPORTED_PLATFORM
    assert pickle.loads(pickle.dumps(caught.value)).gap == caught.value.gap


def test_rs8_cpu_between_two_snapshots_of_one_host(table: ScriptedTable) -> None:
    watching = observer(table)
    before = watching.snapshot()
    table.work(11, 0.5)
    assert cpu_seconds_between(before, watching.snapshot()) == 0.5


def test_rs8_a_sum_that_fell_is_no_difference(table: ScriptedTable) -> None:
    table.start(12, 11, cpu=8.0)
    watching = observer(table)
    before = watching.snapshot()
    table.exit(11)  # its child leaves the tree
    found = cpu_seconds_between(before, watching.snapshot())
    assert found == Gap(ResourceGap.FELL, "a descendant left the tree")


def test_rs8_snapshots_of_two_hosts_have_no_difference(table: ScriptedTable) -> None:
    one = observer(table).snapshot()
    other = replace(one, host=replace(one.host, start_ticks=999))
    assert cpu_seconds_between(one, other) == Gap(ResourceGap.HOST_DIFFERS)
    unknown = replace(one, host=replace(one.host, boot_id=Gap(RunGap.NO_BOOT_ID)))
    assert cpu_seconds_between(unknown, unknown) == Gap(ResourceGap.IDENTITY_UNKNOWN)


@pytest.mark.parametrize("which", [0, 1])
def test_rs8_a_gap_stays_one(table: ScriptedTable, which: int) -> None:
    pair = [observer(table).snapshot(), observer(table).snapshot()]
    pair[which] = replace(pair[which], cpu_time_seconds=Gap(ResourceGap.TREE_CHANGED))
    assert cpu_seconds_between(*pair) == Gap(ResourceGap.TREE_CHANGED)


def lineage(found: ResourceSnapshot) -> tuple[object, ...]:
    return found.subreaper, found.reparented, found.other_session


def test_rs6_a_double_forked_daemon_is_proven_by_its_session(table: ScriptedTable) -> None:
    """Its session is that of the process that made it, which has ended: no child of the host could have it."""
    table.adopters.add(HOST)
    table.start(12, 11, session=12)
    table.start(13, 12, session=12)
    watching = observer(table, lineage=True, adopter=HOST)
    table.end(12)
    assert lineage(watching.snapshot()) == (True, (13,), (13,))


def test_rs6_an_orphan_of_our_session_is_proven_by_an_earlier_snapshot(table: ScriptedTable) -> None:
    table.adopters.add(HOST)
    table.start(12, 11)
    watching = observer(table, lineage=True, adopter=HOST)
    assert lineage(watching.snapshot()) == (True, (), ())
    table.end(11)
    for _ in range(2):
        assert lineage(watching.snapshot()) == (True, (12,), ())


def test_rs6_whoever_was_adopted_for_the_host_is_proven_by_its_parent(table: ScriptedTable) -> None:
    table.start(12, 11)
    table.end(11)
    found = observer(table, lineage=True, adopter=INIT).snapshot()
    assert found.process_count == 2
    assert lineage(found) == (True, (12,), ())


def test_rs6_a_child_that_leads_a_session_of_its_own_is_not_said_to_be_adopted(table: ScriptedTable) -> None:
    table.start(12, HOST, session=12)
    found = observer(table, lineage=True).snapshot()
    assert lineage(found) == (False, (), (12,))


def test_rs1_a_snapshot_survives_json(table: ScriptedTable) -> None:
    found = observer(table, lineage=True).snapshot()
    assert msgspec.json.decode(msgspec.json.encode(found), type=ResourceSnapshot) == found
    gap = replace(found, pss_bytes=Gap(ResourceGap.UNREADABLE))
    assert msgspec.json.decode(msgspec.json.encode(gap), type=ResourceSnapshot) == gap
