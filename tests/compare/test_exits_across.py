"""What leaves the envelope on one rank because something left it on another is a consequence (CP-8b, CP-9)."""

from dataclasses import replace as with_fields

import pytest
from msgspec.structs import replace

from paritrace.compare.blames import Blame
from paritrace.compare.collective_members import Asked, Key
from paritrace.compare.describe import pair_difference
from paritrace.compare.exits_across import exits_across
from paritrace.compare.outside import Moment, moment_of_call
from paritrace.compare.placing import Placed
from paritrace.compare.rank_jobs import compare_sessions, lines_of
from paritrace.compare.rank_summary import RankSummary, summarise
from paritrace.compare.result import Group
from paritrace.compare.settings import Settings
from paritrace.runs.reading import open_run
from tests.compare.test_exits import capture

REDUCED: Key = ("tp", 0, 0)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> tuple[RankSummary, Placed]:
    """One rank's summary, and a statement about one of its calls, to be placed where a test wants it."""
    place = tmp_path_factory.mktemp("across")
    a, b = open_run(capture(place / "a")), open_run(capture(place / "b", eps=1e-3))
    of = compare_sessions((a, b), (a.sessions[0], b.sessions[0]), settings=Settings(), lines=lines_of(a, b))
    i = min(of.origins.blames)
    return summarise(of), Placed(moment_of_call(of, i), pair_difference(of, i, Blame(Group.EXCEEDS)), 2, ("call", i))


def exit_at(item: Placed, at: int, *, step: int = 0, phase: str = "forward", root: int = 0) -> Placed:
    place = replace(item.difference, step=step, phase=phase)
    return item._replace(moment=Moment(step, at, 0, 0), difference=place, root=("call", root))


def rank(alone: RankSummary, number: int, *exits: Placed, given: bool = False, begun: int = -1) -> RankSummary:
    asked = (Asked(REDUCED, (1 - number,)),)
    return with_fields(
        alone,
        rank=number,
        exits=list(exits),
        given={item.root: asked for item in exits if given and item.root is not None},
        begun={REDUCED: begun} if begun >= 0 else {},
    )


def kept(*ranks: RankSummary) -> list[list[int]]:
    return [[item.moment.at for item in one.exits] for one in exits_across(ranks)]


def test_a_module_that_is_given_what_left_on_another_rank_follows(alone: tuple[RankSummary, Placed]) -> None:
    summary, item = alone
    innocent = rank(summary, 0, exit_at(item, 90), given=True)
    guilty = rank(summary, 1, exit_at(item, 40), begun=60)
    assert kept(innocent, guilty) == [[], [40]]
    assert exits_across([innocent, guilty])[1].exits[0].consequences == 2 + 1 + 2


def test_what_left_after_the_collective_was_entered_gave_nothing(alone: tuple[RankSummary, Placed]) -> None:
    summary, item = alone
    assert kept(rank(summary, 0, exit_at(item, 90), given=True), rank(summary, 1, exit_at(item, 90), begun=60)) == [
        [90],
        [90],
    ]


def test_without_a_collective_inside_two_ranks_stand_for_themselves(alone: tuple[RankSummary, Placed]) -> None:
    summary, item = alone
    assert kept(rank(summary, 0, exit_at(item, 90)), rank(summary, 1, exit_at(item, 40), begun=60)) == [[90], [40]]


@pytest.mark.parametrize(("step", "phase"), [(1, "forward"), (0, "backward"), (0, "optimizer")])
def test_gradients_and_later_steps_follow_a_forward_pass_elsewhere(
    alone: tuple[RankSummary, Placed], step: int, phase: str
) -> None:
    summary, item = alone
    later = exit_at(item, 200, step=step, phase=phase)
    assert kept(rank(summary, 0, later), rank(summary, 1, exit_at(item, 40))) == [[], [40]]


def test_the_order_of_ranks_does_not_matter_and_one_rank_loses_nothing(alone: tuple[RankSummary, Placed]) -> None:
    summary, item = alone
    assert kept(rank(summary, 0, exit_at(item, 40), exit_at(item, 90, step=1))) == [[40, 90]]
    assert kept(rank(summary, 0, exit_at(item, 40), begun=60), rank(summary, 1, exit_at(item, 90), given=True)) == [
        [40],
        [],
    ]
