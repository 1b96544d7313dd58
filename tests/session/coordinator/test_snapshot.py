"""What a status is made of (SE-11, SE-14, SE-28, SE-36)."""

from typing import Any

from msgspec.structs import replace

from paritrace.session.bounds import bounds_with
from paritrace.session.commands import Body, Command, Kind
from paritrace.session.coordinator.snapshot import Seen, status_of
from paritrace.session.coordinator_events import Asked
from paritrace.session.coordinator_machine import began, step
from paritrace.session.coordinator_record import Coordinator, Known, Phase
from paritrace.session.messages import Beat
from paritrace.session.rounds import ENDLESS
from paritrace.session.states import RankState
from paritrace.session.words import status_words

NS = 1_000_000_000


def beat(rank: int, step: int, **more: Any) -> Beat:
    return Beat(
        generation=1, rank=rank, epoch=2, state=RankState.RUNNING, step=step, pending=0, config_revision=0, **more
    )


def known(rank: int, step: int, **more: Any) -> Known:
    return Known(rank, state=RankState.RUNNING, epoch=2, step=step, beat=beat(rank, step, **more))


def running(*ranks: Known, **changes: Any) -> Coordinator:
    machine = began(world_size=len(ranks), generation=1, bounds=bounds_with({}))
    return replace(machine, ranks=ranks, phase=Phase.READY, target=100, step=10, epoch=2, **changes)


def seen(machine: Coordinator, **heard_ns: int) -> Seen:
    return Seen("s", "local", machine, {int(name[1:]): at for name, at in heard_ns.items()})


def test_se14_ages_and_elapsed_times_are_those_of_the_moment_of_reading() -> None:
    machine = running(known(0, 20, progress_age_seconds=0.5, progress={"elapsed_seconds": 4.0}), known(1, 18))
    status = status_of(seen(machine, r0=5 * NS), now_ns=7 * NS)
    assert status.ranks[0].heartbeat_age_seconds == 2.0
    assert status.ranks[0].progress_age_seconds == 2.5
    assert status.progress == {"elapsed_seconds": 6.0}
    assert status.ranks[1].heartbeat_age_seconds is None
    assert status.ranks[1].progress_age_seconds is None


def test_se11_while_steps_go_on_the_job_is_where_its_last_rank_is() -> None:
    status = status_of(seen(running(known(0, 20), known(1, 18))), now_ns=0)
    assert (status.step, status.target, status.pending) == (18, 100, 82)
    machine = replace(running(known(0, 20), known(1, 18)), target=ENDLESS)
    endless = status_of(seen(machine), now_ns=0)
    assert (endless.step, endless.target, endless.pending) == (18, None, 0)


def test_se36_the_phase_is_that_of_the_state_it_was_said_in() -> None:
    building = known(0, 0, phase="building")
    assert status_of(seen(running(building)), now_ns=0).phase == "building"
    built = replace(building, state=RankState.IDLE)
    assert status_of(seen(running(built)), now_ns=0).phase == "ready"


def test_se23_inputs_of_before_are_not_shown_once_all_ranks_have_others() -> None:
    new: Body = {"digest": "new", "generation": 1}
    machine = running(known(0, 0, inputs={"digest": "old", "generation": 0}))
    assert status_of(seen(machine), now_ns=0).inputs == {"digest": "old", "generation": 0}
    published = replace(machine, inputs_digest="new", inputs_generation=1)
    assert status_of(seen(published), now_ns=0).inputs == new
    building = replace(published, ranks=(known(0, 0, inputs={"gap": "not_told", "generation": 0}),))
    assert status_of(seen(building), now_ns=0).inputs == new
    told = {**new, "generation": 4}
    assert status_of(seen(replace(published, ranks=(known(0, 0, inputs=told),))), now_ns=0).inputs == told


def test_se14_the_end_of_a_run_is_told_only_from_a_rate() -> None:
    def eta(**progress: Any) -> object:
        machine = running(known(0, 20, progress=progress))
        return status_of(seen(machine, r0=0), now_ns=2 * NS).progress.get("eta_seconds")

    assert eta(step=20, total=60, elapsed_seconds=10.0) == 18.0
    assert eta(step=5, total=60, elapsed_seconds=10.0) is None
    assert eta(step=20, elapsed_seconds=10.0) is None
    assert eta(step=60, total=60, elapsed_seconds=10.0) == 0.0


def test_se20_an_error_is_a_fact_of_the_session_whatever_its_ranks_said_last() -> None:
    machine = replace(running(known(0, 20), known(1, 18)), phase=Phase.ERROR, target=None)
    status = status_of(seen(machine), now_ns=0)
    assert (status.state, status.step) == (RankState.ERROR, 18)
    closing = status_of(seen(replace(machine, phase=Phase.CLOSING)), now_ns=0)
    assert closing.state is RankState.CLOSING


def test_se28_the_checkpoint_of_the_live_state_is_named_where_it_is_known_whole() -> None:
    told = {"path": "checkpoints/a", "digest": "d", "step": 20}
    found = status_of(seen(running(known(0, 20, checkpoint=told))), now_ns=0).checkpoint_state
    assert found is not None
    assert found.path == "checkpoints/a"
    assert status_of(seen(running(known(0, 20, checkpoint={"path": "x"}))), now_ns=0).checkpoint_state is None


def test_se32_a_status_shows_the_preview_of_every_rank_that_made_one() -> None:
    of = {rank: {"rank": rank, "path": f"previews/{rank}"} for rank in (0, 1)}
    machine = running(known(0, 20, preview=of[0]), known(1, 20, preview=of[1]), known(2, 20))
    status = status_of(seen(machine), now_ns=0)
    assert [one.preview for one in status.ranks] == [of[0], of[1], {}]
    assert status.preview == of[0]


def test_se21_a_close_that_waits_for_its_ranks_names_the_one_that_does_not() -> None:
    closing, _ = step(running(known(0, 20), known(1, 18)), Asked(Command("c", Kind.CLOSE)))
    lines = status_words(status_of(seen(closing), now_ns=0)).splitlines()
    at = lines.index("under way: close (reserve), id c")
    assert lines[at + 1] == "  it waits for the ranks: `paritrace session close DIR --now` does not"
    saving, _ = step(running(known(0, 20), known(1, 18)), Asked(Command("s", Kind.SAVE)))
    assert "--now" not in status_words(status_of(seen(saving), now_ns=0))
