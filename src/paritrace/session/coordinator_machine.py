"""The machine of the coordinator: commands in, rounds out, and one result for every command (SE-3 to SE-7)."""

from typing import assert_never

from paritrace.session.coordinator_admission import on_asked, on_withdrawn, proceed, start, start_again
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
    Withdrawn,
    Written,
)
from paritrace.session.coordinator_ranks import on_beat, on_ended, on_gone, on_joined
from paritrace.session.coordinator_record import Coordinator, Known, Phase, Turn
from paritrace.session.coordinator_rounds import ROUND, on_answer, on_silence, on_written
from paritrace.session.messages import Answer, Beat, Ended, FromRank, Joined, RoundName


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
        case _:
            assert_never(event)
    proceed(turn)
    return turn.state, tuple(turn.actions)


def _on_heard(turn: Turn, message: FromRank) -> None:
    if message.generation != turn.state.generation or turn.state.ranks[message.rank].gone:
        return
    match message:
        case Joined():
            on_joined(turn, message)
        case Beat():
            on_beat(turn, message)
        case Answer():
            on_answer(turn, message)
        case Ended():
            on_ended(turn, message)
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
    elif timer == GONE:
        close_if_all_gone(turn, whatever=True)
        start_again(turn, whatever=True)
