"""The machine of the coordinator: commands in, rounds out, and one result for every command (SE-3 to SE-7)."""

from typing import assert_never

from paritrace.session.collective import Report, View, view_of
from paritrace.session.coordinator_admission import (
    SURVEY,
    on_asked,
    on_surveyed,
    on_withdrawn,
    proceed,
    start,
    start_again,
)
from paritrace.session.coordinator_ends import GONE, await_gone, close_if_all_gone, fail_stop
from paritrace.session.coordinator_events import (
    Asked,
    CoordinatorAction,
    CoordinatorEvent,
    Elapsed,
    FailStop,
    Gone,
    Heard,
    Opened,
    Surveyed,
    Withdrawn,
    Written,
)
from paritrace.session.coordinator_lines import record_autosave
from paritrace.session.coordinator_ranks import on_beat, on_ended, on_gone, on_joined
from paritrace.session.coordinator_record import Coordinator, Known, Phase, Turn, ours
from paritrace.session.coordinator_rounds import ROUND, on_answer, on_silence, on_written
from paritrace.session.health import BEAT, FAIL_STOP, heard, missed, overdue
from paritrace.session.messages import Answer, Autosaved, Beat, Ended, FromRank, Joined, RoundName


def began(
    *,
    world_size: int,
    generation: int,
    bounds: dict[str, float],
    epoch: int = 0,
    config_revision: int = 0,
    stops_ranks: bool = True,
) -> Coordinator:
    """Return a coordinator whose session was not opened yet. `bounds`: seconds by name, all of `bounds.BOUNDS`."""
    return Coordinator(
        world_size=world_size,
        generation=generation,
        bounds=bounds,
        stops_ranks=stops_ranks,
        ranks=tuple(Known(rank) for rank in range(world_size)),
        epoch=epoch,
        config_revision=config_revision,
    )


def step(state: Coordinator, event: CoordinatorEvent, /) -> tuple[Coordinator, tuple[CoordinatorAction, ...]]:
    """Return the coordinator after an event, and what its shell has to do, in this order."""
    turn = Turn(state)
    match event:
        case Opened():
            start(turn, event.body, generation=state.generation)
        case Asked():
            on_asked(turn, event.command)
        case Withdrawn():
            on_withdrawn(turn, event.command_id)
        case Heard():
            _on_heard(turn, event.message)
        case Gone():
            on_gone(turn, event)
        case Elapsed():
            _on_elapsed(turn, event.timer)
        case Written():
            on_written(turn, event)
        case Surveyed():
            on_surveyed(turn, event)
        case _:
            assert_never(event)
    proceed(turn)
    _view(turn)
    return turn.state, tuple(turn.actions)


def _on_heard(turn: Turn, message: FromRank) -> None:
    if message.generation != turn.state.generation:
        if isinstance(message, Joined):
            turn.record("generation", event="stale_participant", generation=message.generation, rank=message.rank)
        return
    if turn.state.ranks[message.rank].gone:
        return
    heard(turn, message.rank)
    match message:
        case Joined():
            on_joined(turn, message)
        case Beat():
            on_beat(turn, message)
        case Answer():
            on_answer(turn, message)
        case Ended():
            on_ended(turn, message)
        case Autosaved():
            record_autosave(turn, message)
        case _:
            assert_never(message)


def _on_elapsed(turn: Turn, timer: str) -> None:
    if timer == ROUND:
        if turn.state.under is not None and turn.state.under.name is RoundName.CLOSE:
            turn.act(FailStop("ranks did not close in time", "not_closed"))
            await_gone(turn)
        else:
            on_silence(turn)
    elif timer in {"join", "start"} and turn.state.phase is Phase.STARTING:
        fail_stop(turn, f"no_{timer}", f"not all ranks came through `{timer}` in time")
    elif timer.startswith(f"{BEAT}:"):
        missed(turn, int(timer.partition(":")[2]))
    elif timer.startswith(f"{FAIL_STOP}:"):
        overdue(turn, int(timer.partition(":")[2]))
    elif timer == SURVEY and turn.state.starting is not None:
        on_surveyed(turn, Surveyed(turn.state.starting.id, ours("not_surveyed", "it was not read through in time")))
    elif timer == GONE:
        close_if_all_gone(turn, whatever=True)
        start_again(turn, whatever=True)


def view(state: Coordinator, /) -> View:
    """Return what may be said of the job as a whole (SE-11)."""
    reports = [Report(known.state, known.epoch) for known in state.ranks]
    return view_of(reports, state=state.state, epoch=state.state_epoch)


def _view(turn: Turn) -> None:
    """Keep the last state that all ranks agreed on, and write down where it changes."""
    state, now = turn.state, view(turn.state)
    if now.agreed and (now.state, now.epoch) != (state.state, state.state_epoch):
        if now.state is not state.state:
            turn.record(
                "transition", before=state.state.value, after=now.state.value, step=state.ranks[0].step, epoch=now.epoch
            )
        turn.change(state=now.state, state_epoch=now.epoch)
