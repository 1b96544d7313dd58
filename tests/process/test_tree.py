"""A tree is read whole or not at all, whatever happens between two reads, under either identity rule (RS-3, RS-10)."""

from functools import partial

import pytest
from msgspec.structs import replace

from paritrace.evidence.gaps import Gap, ResourceGap, RunGap
from paritrace.process.resources import ResourceObservationUnavailable
from paritrace.process.table import IdentityRule
from paritrace.process.tree import MOST_READS, read_tree
from paritrace.testing.process_tables import INIT, ScriptedTable

HOST = 10


@pytest.fixture(params=list(IdentityRule))
def table(request: pytest.FixtureRequest) -> ScriptedTable:
    """Init, a stranger 2 below it, and the host with child 11, grandchild 12."""
    made = ScriptedTable(rule=request.param)
    made.start(INIT, 0)
    made.start(2)
    made.start(HOST, cpu=1.0)
    made.start(11, HOST, cpu=2.0)
    made.start(12, 11, cpu=4.0)
    return made


def scanning(table: ScriptedTable) -> ScriptedTable:
    table.lists_children = False
    return table


def pids(table: ScriptedTable) -> list[int]:
    return [row.pid for row in read_tree(table, table.identity(HOST))]


def refused(table: ScriptedTable) -> Gap[ResourceGap]:
    with pytest.raises(ResourceObservationUnavailable) as caught:
        read_tree(table, table.identity(HOST))
    return caught.value.gap


def cpu_seconds(table: ScriptedTable) -> float:
    return sum(row.own_cpu_seconds + row.waited_cpu_seconds for row in read_tree(table, table.identity(HOST)))


def test_rs3_the_host_and_its_descendants_and_nobody_else(table: ScriptedTable) -> None:
    assert pids(table) == [HOST, 11, 12]


def test_rs10_the_same_from_a_full_scan(table: ScriptedTable) -> None:
    assert pids(scanning(table)) == [HOST, 11, 12]
    assert ("children", HOST) not in table.calls


def test_rs3_a_list_is_read_until_two_consecutive_ones_agree(table: ScriptedTable) -> None:
    table.before("children", HOST, lambda: table.start(13, HOST), nth=2)
    assert pids(table) == [HOST, 11, 13, 12]
    assert table.calls.count(("children", HOST)) == 3


def test_rs3_a_list_that_misses_a_live_child_once_is_read_again(table: ScriptedTable) -> None:
    """Children that exit while the kernel hands the list out by the page hide others (proc(5))."""
    table.unlisted.add(11)
    table.before("children", HOST, table.unlisted.clear, nth=2)
    assert pids(table) == [HOST, 11, 12]


def test_rs10_equal_lists_with_another_between_them_do_not_agree(table: ScriptedTable) -> None:
    table.before("children", HOST, lambda: table.unlisted.add(11), nth=2)
    table.before("children", HOST, table.unlisted.clear, nth=3)
    table.before("children", HOST, lambda: table.unlisted.add(11), nth=4)
    found = refused(table)
    assert found.gap is ResourceGap.TREE_CHANGED
    assert found.detail == "the list of children of process 10 changed between each of 4 reads"
    assert table.calls.count(("children", HOST)) == MOST_READS


def test_rs10_the_fourth_list_may_agree_with_the_third(table: ScriptedTable) -> None:
    table.before("children", HOST, lambda: table.unlisted.add(11), nth=2)
    table.before("children", HOST, table.unlisted.clear, nth=3)
    assert pids(table) == [HOST, 11, 12]


def test_rs10_scans_of_the_machine_have_to_agree_too(table: ScriptedTable) -> None:
    table.before("parents", 0, lambda: table.start(13, HOST), nth=2)
    assert pids(scanning(table)) == [HOST, 11, 13, 12]
    assert table.calls.count(("parents", 0)) == 3


def test_rs10_a_scan_that_differs_elsewhere_agrees(table: ScriptedTable) -> None:
    table.before("parents", 0, lambda: table.start(99, 2), nth=2)
    assert pids(scanning(table)) == [HOST, 11, 12]
    assert table.calls.count(("parents", 0)) == 2


def test_rs10_scans_that_never_agree_are_unavailable(table: ScriptedTable) -> None:
    for nth in range(1, 5):
        table.before("parents", 0, partial(table.start, 50 + nth, HOST), nth=nth)
    assert refused(scanning(table)).gap is ResourceGap.TREE_CHANGED


def reused(table: ScriptedTable, pid: int, *, parent: int) -> None:
    """The process ends and its number goes to another one."""
    table.end(pid)
    table.start(pid, parent)


@pytest.mark.parametrize("lists", [True, False])
def test_rs3_a_listed_number_that_belongs_to_a_stranger_by_now_is_none_of_ours(
    table: ScriptedTable, lists: bool
) -> None:
    table.lists_children = lists
    table.end(12)
    table.before("row", 11, lambda: reused(table, 11, parent=2))
    assert pids(table) == [HOST]


@pytest.mark.parametrize("lists", [True, False])
def test_e08_parent_and_child_both_reused_in_the_same_shape_are_strangers(table: ScriptedTable, lists: bool) -> None:
    """The child's row names the right parent number; only the parent's start shows that both are others."""
    table.lists_children = lists

    def both() -> None:
        table.end(12)
        table.end(11)
        table.start(11, 2)
        table.start(12, 11, cpu=900.0)

    table.before("row", 12, both)
    assert pids(table) == [HOST]


@pytest.mark.parametrize("lists", [True, False])
def test_rs3_the_child_of_a_parent_that_has_gone_is_skipped_like_an_adopted_one(
    table: ScriptedTable, lists: bool
) -> None:
    table.lists_children = lists
    table.before("row", 12, lambda: table.end(11))
    assert pids(table) == [HOST]


def test_rs3_a_parent_that_goes_before_its_children_are_listed(table: ScriptedTable) -> None:
    table.before("children", 11, lambda: table.end(11))
    assert pids(table) == [HOST]


def test_rs6_an_orphan_that_the_host_adopts_after_it_was_read_is_not_lost(table: ScriptedTable) -> None:
    table.adopters.add(HOST)
    table.before("children", 11, lambda: table.end(11))
    assert pids(table) == [HOST, 12]


def test_rs6_nor_is_one_whose_parent_ended_unseen_where_the_host_is_known_to_adopt(table: ScriptedTable) -> None:
    table.adopters.add(HOST)
    table.start(13, 12)
    table.before("row", 11, lambda: table.end(12))
    assert [row.pid for row in read_tree(table, table.identity(HOST), adopter=HOST)] == [HOST, 11, 13]


@pytest.mark.parametrize("lists", [True, False])
def test_rs6_orphans_that_another_process_adopts_for_the_host_stay_in_its_tree(
    table: ScriptedTable, lists: bool
) -> None:
    """The older child of the adopter, a helper of its own, is none of them."""
    table.lists_children = lists
    table.adopters.add(INIT)
    table.start(13, 12)
    table.end(11)
    rows = read_tree(table, table.identity(HOST), adopter=INIT)
    assert [row.pid for row in rows] == [HOST, 12, 13]
    assert pids(table) == [HOST]


def test_rs6_one_that_is_adopted_during_the_read_is_not_lost(table: ScriptedTable) -> None:
    table.before("row", 11, lambda: table.end(11))
    assert [row.pid for row in read_tree(table, table.identity(HOST), adopter=INIT)] == [HOST, 12]


def test_rs3_a_tree_whose_members_end_during_every_read_is_unavailable(table: ScriptedTable) -> None:
    def replaced(old: int) -> None:
        table.end(old)
        table.start(old + 1, HOST)

    for pid in range(20, 20 + MOST_READS):
        table.before("children", pid, partial(replaced, pid))
    table.start(20, HOST)
    found = refused(table)
    assert found.gap is ResourceGap.TREE_CHANGED
    assert found.detail == "processes below 10 came or went during each of 4 reads of the tree"


@pytest.mark.parametrize("lists", [True, False])
@pytest.mark.parametrize("whose", [11, 12])
def test_rs2_a_live_process_that_cannot_be_read_makes_no_smaller_tree(
    table: ScriptedTable, whose: int, lists: bool
) -> None:
    table.lists_children = lists
    table.deny(whose)
    found = refused(table)
    assert found.gap is ResourceGap.UNREADABLE
    assert f"process {whose}" in str(found.detail)


def test_rs3_a_parent_that_cannot_be_read_again_makes_it_unavailable(table: ScriptedTable) -> None:
    table.before("row", 11, lambda: table.deny(11), nth=2)
    assert refused(table).gap is ResourceGap.UNREADABLE


def test_rs4_a_listed_child_that_has_proven_gone_is_skipped(table: ScriptedTable) -> None:
    table.end(12)
    table.before("row", 11, lambda: table.end(11))
    assert pids(table) == [HOST]


def test_rs4_a_scan_of_a_table_that_hides_processes_is_unavailable(table: ScriptedTable) -> None:
    table.hidden = "/proc is mounted with hidepid=invisible"
    assert refused(scanning(table)) == Gap(ResourceGap.TABLE_HIDDEN, table.hidden)


def test_rs10_a_scan_that_meets_an_unreadable_entry_says_so(table: ScriptedTable) -> None:
    """Under hidepid=noaccess they are listed, and cannot be read."""
    table.deny(2)
    assert refused(scanning(table)) == Gap(ResourceGap.UNREADABLE, "process 2 of another user")


def test_rs3_what_a_stranger_does_not_show_is_no_matter_where_children_are_listed(table: ScriptedTable) -> None:
    table.deny(2)
    assert pids(table) == [HOST, 11, 12]


def test_rs3_a_zombie_s_cpu_counts_and_it_has_no_children(table: ScriptedTable) -> None:
    table.exit(11)
    rows = read_tree(table, table.identity(HOST))
    assert [(row.pid, row.zombie) for row in rows] == [(HOST, False), (11, True)]
    assert cpu_seconds(table) == 3.0
    assert ("children", 11) not in table.calls


def test_rs9_only_the_rule_of_macos_asks_whether_the_child_started_before_the_list(table: ScriptedTable) -> None:
    table.start(13, HOST)
    table.before("row", 13, lambda: reused(table, 13, parent=HOST))
    assert pids(table) == [HOST, 11, 13, 12]
    walks = (
        1 if table.rule is IdentityRule.PARENT_REREAD else 2
    )  # the first shows a child that is younger than its list
    assert table.calls.count(("children", HOST)) == 2 * walks


@pytest.mark.parametrize("lists", [True, False])
def test_rs1_cpu_of_a_child_that_is_waited_for_during_the_read_counts_once(table: ScriptedTable, lists: bool) -> None:
    table.lists_children = lists
    table.start(13, HOST, cpu=8.0)
    table.before("row", 13, lambda: table.end(13))
    assert cpu_seconds(table) == 15.0


def test_rs1_cpu_of_a_child_that_was_counted_and_then_waited_for_counts_once(table: ScriptedTable) -> None:
    table.start(13, HOST, cpu=8.0)
    table.before("row", HOST, lambda: table.end(13), nth=2)
    assert cpu_seconds(table) == 15.0


def test_rs1_cpu_of_a_child_that_is_waited_for_before_the_list_counts_once(table: ScriptedTable) -> None:
    table.start(13, HOST, cpu=8.0)
    table.before("children", HOST, lambda: table.end(13))
    assert cpu_seconds(table) == 15.0


def test_rs3_a_parent_that_waits_for_children_during_every_read_is_unavailable(table: ScriptedTable) -> None:
    for nth, pid in enumerate(range(20, 20 + MOST_READS), 2):
        table.start(pid, HOST, cpu=1.0)
        table.before("row", HOST, partial(table.end, pid), nth=nth)
    assert refused(table).detail == "process 10 waited for children during each of 4 reads"


def test_rs2_a_host_that_has_ended(table: ScriptedTable) -> None:
    identity = table.identity(HOST)
    table.exit(HOST)
    with pytest.raises(ResourceObservationUnavailable, match="process 10 has ended") as caught:
        read_tree(table, identity)
    assert caught.value.gap.gap is ResourceGap.HOST_EXITED
    table.wait(HOST)
    with pytest.raises(ResourceObservationUnavailable, match="process 10 has ended"):
        read_tree(table, identity)


def test_rs2_a_host_that_ends_while_its_tree_is_read(table: ScriptedTable) -> None:
    table.before("children", 11, lambda: table.end(HOST))
    table.before("row", 11, lambda: table.end(11), nth=2)
    assert refused(table).gap is ResourceGap.HOST_EXITED


def test_e07_a_host_whose_number_was_reused(table: ScriptedTable) -> None:
    identity = table.identity(HOST)
    reused(table, HOST, parent=2)
    with pytest.raises(ResourceObservationUnavailable, match="belongs to another one now"):
        read_tree(table, identity)


@pytest.mark.parametrize("unknown", [{"start_ticks": Gap(RunGap.NO_START_TICKS)}, {"boot_id": Gap(RunGap.NO_BOOT_ID)}])
def test_e07_a_host_of_unknown_identity_is_not_said_to_be_reused(
    table: ScriptedTable, unknown: dict[str, object]
) -> None:
    with pytest.raises(ResourceObservationUnavailable) as caught:
        read_tree(table, replace(table.identity(HOST), **unknown))
    assert caught.value.gap.gap is ResourceGap.IDENTITY_UNKNOWN


def test_e07_a_host_of_an_earlier_boot(table: ScriptedTable) -> None:
    identity = table.identity(HOST)
    table.boot_id = "boot-2"
    with pytest.raises(ResourceObservationUnavailable, match="booted since"):
        read_tree(table, identity)


def test_rs2_a_host_of_another_user(table: ScriptedTable) -> None:
    table.deny(HOST)
    assert refused(table).gap is ResourceGap.UNREADABLE
