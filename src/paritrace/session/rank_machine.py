"""The machine of one rank: what it answers to each round, and what its threads are told to do (SE-3 to SE-7)."""

from typing import assert_never

from paritrace.session.commands import Body, Reason
from paritrace.session.messages import Autosaved, Ended, Halt, Round
from paritrace.session.rank_events import (
    AutosaveEnded,
    Broke,
    Built,
    Cut,
    Done,
    Finished,
    Leave,
    RankAction,
    RankEvent,
    Received,
    Send,
    Stepped,
)
from paritrace.session.rank_record import ENDING, Rank, Turn
from paritrace.session.rank_rounds import on_done, on_round, park_if_there
from paritrace.session.states import RankState


def began(*, rank: int, world_size: int, generation: int, capabilities: tuple[str, ...] = ()) -> Rank:
    """Return a rank that begins to load, at epoch 0 of its generation."""
    return Rank(rank=rank, world_size=world_size, generation=generation, capabilities=capabilities)


def step(rank: Rank, event: RankEvent, /) -> tuple[Rank, tuple[RankAction, ...]]:
    """Return the rank after an event, and what its shell has to do, in this order.

    Raises:
        InternalError: a transition that the table does not allow (`illegal_transition`, Refused): nothing has changed.
    """
    turn = Turn(rank)
    match event:
        case Received():
            _on_received(turn, event)
        case Built():
            _on_built(turn, event)
        case Stepped():
            _on_stepped(turn, event)
        case Done():
            on_done(turn, event)
        case Broke():
            _on_broke(turn, event)
        case Finished():
            _on_finished(turn, event)
        case AutosaveEnded():
            _on_autosave_ended(turn, event)
        case Cut():
            turn.act(Leave("the coordinator is gone"))
        case _:
            assert_never(event)
    return turn.rank, tuple(turn.actions)


def _on_received(turn: Turn, event: Received) -> None:
    match event.message:
        case Round() as message:
            on_round(turn, message, next_step=event.step)
        case Halt(generation=generation, why=why):
            if generation == turn.rank.generation:
                turn.act(Leave(why))


def _on_built(turn: Turn, event: Built) -> None:
    if turn.rank.state is not RankState.LOADING:  # it was told to close meanwhile
        return
    turn.enter(RankState.IDLE)
    turn.change(step=event.step, config_revision=event.config_revision)
    turn.change(capabilities=event.capabilities or turn.rank.capabilities)
    if event.target is not None:
        turn.run_to(event.target)
    _tell_end(turn, event.facts)


def _on_stepped(turn: Turn, event: Stepped) -> None:
    rank = turn.rank
    if rank.state is not RankState.RUNNING:
        return
    turn.change(step=event.step, drained_at=event.step)
    if event.step == rank.target:
        turn.enter(RankState.IDLE)
        turn.change(target=None)
        _tell_end(turn, event.facts)
    park_if_there(turn)


def _on_broke(turn: Turn, event: Broke) -> None:
    if turn.rank.state in ENDING:
        return
    turn.enter(RankState.ERROR)
    turn.change(step=event.step, target=None)
    _tell_end(turn, {}, reasons=event.reasons)


def _on_finished(turn: Turn, event: Finished) -> None:
    if turn.rank.state in ENDING:
        return
    turn.enter(RankState.CLOSING)
    turn.change(step=event.step, target=None)
    _tell_end(turn, {})
    turn.act(Leave("the loop is over"))


def _on_autosave_ended(turn: Turn, event: AutosaveEnded) -> None:
    rank = turn.rank
    said = Autosaved(rank.generation, rank.rank, rank.epoch, event.step, event.seconds, event.facts, event.words)
    turn.act(Send(said))


def _tell_end(turn: Turn, facts: Body, *, reasons: tuple[Reason, ...] = ()) -> None:
    rank = turn.rank
    turn.act(
        Send(
            Ended(
                generation=rank.generation,
                rank=rank.rank,
                epoch=rank.epoch,
                state=rank.state,
                step=rank.step,
                config_revision=rank.config_revision,
                reasons=reasons,
                facts=facts,
            )
        )
    )
