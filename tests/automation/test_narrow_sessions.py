"""`narrow` of two sessions: put at one checkpoint, captured finer and finer, never started again (CP-15, SE-15)."""

from collections.abc import Generator
from pathlib import Path

import pytest

from paritrace import Session
from paritrace.automation.narrow import Telling, narrow
from paritrace.automation.narrow_records import Ended, Narrowed, Question
from paritrace.automation.narrow_task import Wanted, narrowing_of
from paritrace.errors import HostError, RequestError
from paritrace.session.opening import read_journal
from paritrace.session.status import Status

pytestmark = pytest.mark.slow

NORMS = "tests.automation.resident_norms:Norms"
DIVIDING = "tests.automation.resident_norms:Dividing"


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[Session, Session]]:
    """Two sessions that differ by an epsilon; the first has a checkpoint `two`, saved after two steps."""
    folder = tmp_path_factory.mktemp("sessions")
    with (
        Session.start(folder / "ours", NORMS) as ours,
        Session.start(folder / "theirs", NORMS, arguments={"eps": 1e-2}) as theirs,
    ):
        ours.run(2, wait=True)
        ours.save("two")
        yield ours, theirs
        for one in (ours, theirs):
            one.close()


def narrowed(ours: Session, theirs: Session, folder: Path, **wanted: object) -> Narrowed:
    asked = Wanted(checkpoint="two", **wanted)  # type: ignore[arg-type]
    task = narrowing_of(ours.directory, theirs.directory, folder=folder, wanted=asked)
    return narrow(task, Telling(stage=lambda _: None, ended=lambda _: None))


def ranks_of(session: Session) -> list[int | None]:
    status: Status = session.status()
    return [view.pid for view in status.ranks]


def test_se15_two_implementations_at_one_state_are_narrowed_to_the_call_without_a_restart(
    sessions: tuple[Session, Session], tmp_path: Path
) -> None:
    before = [ranks_of(one) for one in sessions]
    found = narrowed(*sessions, tmp_path / "rounds")
    assert found.ended is Ended.FOUND
    assert found.place is not None
    assert (found.place.step, found.place.module, found.place.function) == (2, "1", "aten.add.Tensor")
    assert [one.plan.question for one in found.rounds] == [
        Question.RECORD,
        Question.REPEAT,
        Question.MODULES,
        Question.OPERATORS,
    ]
    assert [ranks_of(one) for one in sessions] == before
    again = narrowed(*sessions, tmp_path / "rounds")
    assert again.rounds == found.rounds
    kept = {path.stat().st_ino for one in sessions for path in (one.directory / "captures").rglob("run.json")}
    made = {path.stat().st_ino for path in (tmp_path / "rounds").rglob("run.json")}
    assert made, "each capture takes its space once"
    assert made <= kept


def test_se15_two_classes_are_put_at_one_state_where_the_second_says_that_it_accepts_the_first(
    sessions: tuple[Session, Session], tmp_path: Path
) -> None:
    with Session.start(tmp_path / "dividing", DIVIDING) as dividing:
        found = narrowed(sessions[0], dividing, tmp_path / "rounds")
        assert (found.ended, found.place is not None and found.place.module) == (Ended.FOUND, "1")
        loaded = [line.facts for line in read_journal(dividing.directory).lines if line.facts.get("event") == "loaded"]
        assert {one["accepted"]["workload"] for one in loaded} == {NORMS}
        dividing.save("of-another")
        asked = Wanted(checkpoint="of-another")
        task = narrowing_of(dividing.directory, sessions[0].directory, folder=tmp_path / "back", wanted=asked)
        with pytest.raises(HostError) as refused:
            narrow(task, Telling(stage=lambda _: None, ended=lambda _: None))
        assert any("does not say that it accepts that" in line for line in refused.value.details)
        dividing.close()


def test_se15_a_later_step_is_reached_from_the_checkpoint(sessions: tuple[Session, Session], tmp_path: Path) -> None:
    found = narrowed(*sessions, tmp_path / "rounds", between=(4, 6))
    assert found.place is not None
    assert found.place.step == 4
    with pytest.raises(RequestError, match="steps 1 to 3 cannot be taken") as refused:
        narrowed(*sessions, tmp_path / "earlier", between=(1, 3))
    assert refused.value.code == "bad_steps"


def test_se15_a_session_that_takes_steps_or_has_another_checkpoint_of_that_name_is_refused(
    sessions: tuple[Session, Session], tmp_path: Path
) -> None:
    ours, theirs = sessions
    with pytest.raises(RequestError) as perturbed:
        narrowed(ours, theirs, tmp_path / "perturbed", draws=8)
    assert perturbed.value.code == "needs_runs"
    theirs.run(1_000_000)
    with pytest.raises(RequestError) as busy:
        narrowed(ours, theirs, tmp_path / "busy")
    assert busy.value.code == "session_busy"
    theirs.stop()
    theirs.save("other")
    ours.save("other")
    asked = Wanted(checkpoint="other")
    with pytest.raises(RequestError) as another:
        narrowing_of(ours.directory, theirs.directory, folder=tmp_path / "another", wanted=asked)
    assert another.value.code == "another_checkpoint"
