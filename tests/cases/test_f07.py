"""F-07: ranks whose checkpoints are at unlike steps apply none of them; rank 0's is not taken for all (SE-8)."""

from paritrace.session.commands import Kind, Result
from paritrace.session.messages import RoundName
from tests.cases.session_told import Told


def test_f07_three_ranks_at_step_100_and_one_at_90_are_refused_with_the_counts() -> None:
    session = Told(world_size=4).ready()
    session.asks(Kind.LOAD, checkpoint="latest")
    for rank, step in enumerate((100, 100, 90, 100)):
        session.answers(rank, RoundName.VOTE, digest="same", facts={"step": step})
    assert RoundName.ACT not in session.rounds()
    for rank in range(4):
        session.answers(rank, RoundName.ABORT)
    assert session.reply is not None
    assert session.reply.result is Result.REFUSED
    (reason,) = session.reply.reasons
    assert "steps differ {90: 1, 100: 3}" in reason.words
    assert "not applied" in reason.words
    assert session.state.step == 0
