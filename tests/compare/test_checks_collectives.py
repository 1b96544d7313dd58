"""Collectives between the members of a group: made alike, seen to complete, with one result (CP-25, CA-31)."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from paritrace.compare.checks_result import Evidence, Invariant, Outcome
from paritrace.evidence.calls import Level, LevelMark
from paritrace.evidence.distributed import CollectiveCounts, Group
from tests.compare import check_records as r
from tests.compare.rank_records import Records, across_of, collective, definitions, invariants_of


def session(rank: int, *made: Records, world: tuple[int, ...] = (0, 1), others: Records | None = None) -> Records:
    group: Records = [Group(0, "world", world, "gloo")]
    return [*definitions(rank), *group, *(others or []), *(record for records in made for record in records)]


def of(*sessions: Records, cut: tuple[int, ...] = ()) -> dict[str, Invariant]:
    return invariants_of(across_of(dict(enumerate(sessions)), cut=cut))


def test_cp25_collectives_that_are_made_alike_pass() -> None:
    found = of(*(session(rank, collective(0), collective(1, line=rank + 11)) for rank in (0, 1)))
    for identity in ("collectives.match", "collectives.completed", "collectives.results"):
        assert found[identity].status is Outcome.PASS, found[identity]


def test_cp25_no_collective_is_no_agreement() -> None:
    found = of(session(0), session(1))
    for identity in ("collectives.match", "collectives.completed", "collectives.results"):
        assert found[identity].status is Outcome.NOT_CHECKABLE


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"operation": "broadcast", "reduce": "", "root": 0}, "broadcast float32[128] from rank 0 at train.py:20"),
        ({"reduce": "avg"}, "all_reduce avg float32[128] at train.py:20"),
        ({"kind": r.BFLOAT16}, "at train.py:20"),
    ],
)
def test_cp25_the_first_collective_that_differs_is_named_with_both_sites(other: dict[str, object], words: str) -> None:
    bfloat16: Records = [r.kind(r.BFLOAT16, "bfloat16")]
    world = (0, 1, 2)
    sessions = [
        session(
            rank,
            collective(0, step=1),
            collective(1, step=1, line=20, **other) if rank == 2 else collective(1, step=1, line=15),  # type: ignore[arg-type]
            world=world,
            others=bfloat16,
        )
        for rank in world
    ]
    found = of(*sessions)["collectives.match"]
    assert (found.status, found.step, found.evidence.total) == (Outcome.FAIL, 1, 1)
    first = found.evidence.facts[0]
    assert first.startswith("group world, operation 1: ranks 0,1: all_reduce sum float32[128] at train.py:15; rank 2: ")
    assert words in first


def test_cp25_a_member_that_stopped_earlier_is_named() -> None:
    found = of(session(0, collective(0), collective(1, line=17)), session(1, collective(0)))["collectives.match"]
    assert found.status is Outcome.FAIL
    assert found.evidence.facts[0] == (
        "group world: rank 1 made 1 of 2 operations, the first missing being all_reduce 1 at train.py:17"
    )


def test_cp25_a_member_that_was_cut_off_is_not_said_to_have_stopped() -> None:
    found = of(session(0, collective(0), collective(1)), session(1, collective(0)), cut=(1,))
    assert found["collectives.match"].status is Outcome.NOT_CHECKABLE
    assert "its journal was cut off" in found["collectives.match"].evidence.reason


def test_cp25_members_whose_levels_change_are_not_said_to_have_stopped() -> None:
    levels = LevelMark(1, (Level.DIGEST,), "trigger")
    found = of(session(0, collective(0), collective(1)), session(1, collective(0), [levels]))["collectives.match"]
    assert found.status is Outcome.NOT_CHECKABLE


def test_cp25_a_reduction_over_another_group_is_named() -> None:
    """Rank 3 reduces with everyone where the others reduce in pairs."""
    world, low, high = (0, 1, 2, 3), (0, 1), (2, 3)
    pairs = {rank: Group(1, "ranks " + ",".join(map(str, pair)), pair, "gloo") for pair in (low, high) for rank in pair}
    sessions = [
        session(rank, collective(0, group=0 if rank == 3 else 1), world=world, others=[pairs[rank]]) for rank in world
    ]
    found = of(*sessions)["collectives.match"]
    assert found.status is Outcome.FAIL
    facts = " | ".join(found.evidence.facts)
    assert (
        "group ranks 2,3: rank 3 made 0 of 1 operations, the first missing being all_reduce 0 at train.py:10" in facts
    )
    assert "group world: rank 0 made 0 of 1 operations" in facts


def test_cp25_what_one_member_never_completed_is_named() -> None:
    found = of(session(0, collective(0)), session(1, collective(0, result=None, line=12)))["collectives.completed"]
    assert found.status is Outcome.FAIL
    assert found.evidence.facts[0] == (
        "rank 1 was not seen to complete all_reduce 0 at train.py:12 of group world; another member was"
    )


def test_cp25_what_no_whole_member_was_seen_to_complete_is_left_open() -> None:
    found = of(*(session(rank, collective(0, result=None)) for rank in (0, 1)))["collectives.completed"]
    assert found.status is Outcome.NOT_CHECKABLE
    hung = of(*(session(rank, collective(0, result=None)) for rank in (0, 1)), cut=(0, 1))["collectives.completed"]
    assert (hung.status, hung.evidence.total) == (Outcome.FAIL, 2)


def test_cp25_unlike_results_are_named_by_sides() -> None:
    world = (0, 1, 2)
    sessions = [
        session(rank, collective(0), collective(1, result=("e" if rank == 1 else "f") * 16), world=world)
        for rank in world
    ]
    found = of(*sessions)["collectives.results"]
    assert found.status is Outcome.FAIL
    assert "ranks 0,2 agree; rank 1 differs" in found.evidence.facts[0]


def test_cp25_results_that_rightly_differ_are_not_compared() -> None:
    sessions = [session(rank, collective(0, operation="reduce_scatter", result=f"{rank:016x}")) for rank in (0, 1)]
    assert of(*sessions)["collectives.results"].status is Outcome.NOT_CHECKABLE


def test_cp25_sends_and_receives_are_no_collectives() -> None:
    sessions = [
        session(0, collective(0, operation="send"), collective(1)),
        session(1, collective(0, operation="recv"), collective(1)),
        session(2, collective(0)),
    ]
    made = [[*one] for one in sessions]
    for one in made:
        one[next(i for i, record in enumerate(one) if isinstance(record, Group))] = Group(0, "world", (0, 1, 2), "gloo")
    assert of(*made)["collectives.match"].status is Outcome.PASS


@pytest.mark.parametrize(("numbers", "status"), [((3, 3), Outcome.PASS), ((3, 2), Outcome.FAIL)])
def test_cp25_at_level_digest_the_numbers_of_a_step_are_compared(numbers: tuple[int, int], status: Outcome) -> None:
    def counted(rank: int) -> Records:
        counts = [CollectiveCounts(0, {"world": 3}), CollectiveCounts(1, {"world": numbers[rank]})]
        return session(rank, list(counts))

    found = of(counted(0), counted(1))["collectives.match"]
    assert found.status is status
    if status is Outcome.FAIL:
        assert found.step == 1
        assert found.evidence.facts[0] == "group world in step 1: rank 0 made 3; rank 1 made 2"


KINDS = st.lists(st.sampled_from(["all_reduce", "broadcast", "barrier"]), max_size=4)


@settings(max_examples=60, deadline=None)
@given(st.lists(KINDS, min_size=3, max_size=3), st.randoms(use_true_random=False))
def test_cp25_the_order_of_sessions_never_changes_what_is_found_of_collectives(
    made: list[list[str]], shuffle: random.Random
) -> None:
    world = (0, 1, 2)
    sessions = {
        rank: session(
            rank, *(collective(nth, operation=name, line=10 + nth) for nth, name in enumerate(names)), world=world
        )
        for rank, names in enumerate(made)
    }
    order = list(world)
    shuffle.shuffle(order)
    found = invariants_of(across_of(sessions, order=order))
    again = invariants_of(across_of(sessions))
    # of sides that agree, the site of the first that was read is told: check reads by rising rank
    assert [replace(one, evidence=Evidence()) for one in found.values()] == [
        replace(one, evidence=Evidence()) for one in again.values()
    ]
    alike = made[0] == made[1] == made[2]
    assert (found["collectives.match"].status is Outcome.FAIL) is not alike
