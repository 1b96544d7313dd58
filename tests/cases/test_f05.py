"""F-05: ranks that disagree on a shape are refused before any of them enters a step (SE-9)."""

from paritrace.session.commands import Kind, Result
from paritrace.session.messages import RoundName
from tests.cases.session_told import Told


def test_f05_plans_of_unlike_shapes_are_refused_before_anything_is_applied() -> None:
    session = Told(world_size=2).ready()
    session.asks(Kind.CONFIGURE, values={"n": 8})
    session.answers(0, RoundName.VOTE, digest="n=8")
    session.answers(1, RoundName.VOTE, digest="n=6")
    assert RoundName.ACT not in session.rounds()
    for rank in range(2):
        session.answers(rank, RoundName.ABORT)
    assert session.reply is not None
    assert session.reply.result is Result.REFUSED
    told = {one.rank: one.words for one in session.reply.reasons}
    assert told.keys() == {0, 1}
    assert "n=8" in told[0]
    assert "n=6" in told[1]
    assert session.state.config_revision == 0
    assert session.stopped is None


def test_f05_the_next_command_is_voted_for_under_the_next_epoch() -> None:
    session = Told(world_size=2).ready()
    session.asks(Kind.CONFIGURE, values={"n": 8})
    for rank in range(2):
        session.answers(rank, RoundName.VOTE, digest=f"n={rank}")
    for rank in range(2):
        session.answers(rank, RoundName.ABORT)
    assert session.state.epoch == 1
