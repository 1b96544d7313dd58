"""F-04: a rank that answers while its collective is stuck is not healthy: both facts are said (SE-13).

What NCCL's RAS says of such a job is read, with its times, by tests/runs/test_death.py.
"""

from tests.cases.session_told import Told


def test_f04_a_heartbeat_is_no_proof_of_progress() -> None:
    session = Told(world_size=2).ready()
    session.beats(0, progress_age_seconds=0.1)
    session.beats(1, progress_age_seconds=1800.0)
    assert session.state.ranks[0].findings == ()
    (finding,) = session.state.ranks[1].findings
    assert finding.startswith("stalled: no progress for more than 30 s, at step 12")
    assert session.state.ranks[1].beat is not None
    assert session.state.ranks[1].beat.progress_age_seconds == 1800.0
    assert session.stopped is None


def test_f04_work_that_declared_its_own_time_is_not_stalled_within_it() -> None:
    session = Told(world_size=1).ready()
    session.beats(0, progress_age_seconds=500.0, deadline_seconds=600.0)
    assert session.state.ranks[0].findings == ()
    session.beats(0, progress_age_seconds=601.0, deadline_seconds=600.0)
    assert len(session.state.ranks[0].findings) == 1
