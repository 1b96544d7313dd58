"""F-18: a rank of an earlier generation that joins the present one is turned away and written down (SE-16, SE-20)."""

from paritrace.session.coordinator_record import Phase
from tests.cases.session_told import Told


def test_f18_a_survivor_of_generation_1_is_no_participant_of_generation_2() -> None:
    session = Told(world_size=2, generation=2)
    session.joins(0)
    session.joins(1, generation=1)
    assert session.state.ranks[1].joined is None
    assert session.records("generation")[-1] == {"event": "stale_participant", "generation": 1, "rank": 1}
    session.joins(1)
    for rank in range(2):
        session.builds(rank)
    assert session.state.phase is Phase.READY
    assert session.stopped is None
