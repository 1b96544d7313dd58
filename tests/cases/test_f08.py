"""F-08: ranks that hold different state after a load have not loaded, whatever each of them says (SE-8)."""

from paritrace.session.commands import Kind, Result
from paritrace.session.messages import RoundName
from tests.cases.session_told import Told


def test_f08_three_digests_after_a_load_end_the_session_and_are_named() -> None:
    session = Told(world_size=3).ready()
    session.asks(Kind.LOAD, checkpoint="here")
    for rank in range(3):
        session.answers(rank, RoundName.VOTE, digest="file")
    for rank in range(3):
        session.answers(rank, RoundName.ACT, digest=f"state {rank}", step=100, config_revision=1)
    assert session.reply is not None
    assert session.reply.result is Result.FAILED
    assert {one.rank for one in session.reply.reasons} == {0, 1, 2}
    assert all(f"state {one.rank}" in one.words for one in session.reply.reasons)
    assert session.stopped is not None
    assert session.stopped.code == "ranks_apart"


def test_f08_the_same_digest_on_all_is_a_load() -> None:
    session = Told(world_size=3).ready()
    session.asks(Kind.LOAD, checkpoint="here")
    for rank in range(3):
        session.answers(rank, RoundName.VOTE, digest="file")
    for rank in range(3):
        session.answers(rank, RoundName.ACT, digest="state", step=100, config_revision=1)
    assert session.reply is not None
    assert (session.reply.result, session.reply.step) == (Result.APPLIED, 100)
