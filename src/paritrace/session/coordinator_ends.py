"""How a generation ends: by a fail-stop, or closed, with every waiter told (SE-7, SE-12, SE-20)."""

from paritrace.session.commands import Kind, Reason, Result
from paritrace.session.coordinator_events import FailStop, SetTimer
from paritrace.session.coordinator_record import Phase, Turn, ours
from paritrace.session.messages import RoundName

GONE = "gone"  # the timer of waiting for killed ranks
_ROUND_TIMERS = ("round", "join", "start")
_OVER = frozenset({Phase.ERROR, Phase.CLOSED})


def fail_stop(turn: Turn, code: str, why: str, reasons: tuple[Reason, ...] = ()) -> None:
    """End this generation's work: the command under way has failed, those behind it are cancelled."""
    state = turn.state
    if state.phase in _OVER:
        return
    turn.record("failure", durable=True, code=code, why=why, step=state.step, epoch=state.epoch)
    clear_timers(turn)
    turn.act(FailStop(why, code))
    under, closing = state.under, state.phase is Phase.CLOSING
    why_all = reasons or ours(code, why)
    turn.change(
        error=why_all,
        phase=Phase.CLOSING if closing else Phase.ERROR,
        target=None,
        parked=False,
        control="full" if state.stops_ranks else f"disabled: {why}",
    )
    if closing:
        await_gone(turn)
    elif under is not None and under.name is not RoundName.RESUME:
        turn.change(under=None)
        turn.settle(under.command, Result.FAILED, reasons=why_all, notes=under.notes)
    else:
        turn.change(under=None)
    if state.starting is not None:
        turn.change(starting=None)
        turn.settle(state.starting, Result.FAILED, reasons=why_all)
    _cancel_queue(turn, "the generation has ended: " + why)


def _cancel_queue(turn: Turn, why: str) -> None:
    """Cancel what waits, but for the ways on from an error."""
    for command in turn.state.queue:
        if command.kind is not Kind.CLOSE:
            turn.settle(command, Result.CANCELLED, reasons=ours("generation_ended", why))
    turn.change(queue=tuple(command for command in turn.state.queue if command.kind is Kind.CLOSE))


def enter_closing(turn: Turn, why: str) -> None:
    """Close from now on: whatever waits is cancelled."""
    turn.change(phase=Phase.CLOSING)
    _cancel_queue(turn, why)


def await_gone(turn: Turn) -> None:
    """Wait for killed ranks, so long as a driver may hold them and not longer: then they are not reaped (SE-21)."""
    bounds = turn.state.bounds
    turn.act(SetTimer(GONE, bounds["term_grace"] + bounds["reap"] + bounds["slack"]))


def clear_timers(turn: Turn) -> None:
    """Clear the timers of rounds, of starting and of every rank."""
    names = [*_ROUND_TIMERS, *(f"{one}:{k.rank}" for k in turn.state.ranks for one in ("beat", "fail_stop"))]
    for name in names:
        turn.act(SetTimer(name, None))


def close_if_all_gone(turn: Turn, *, whatever: bool = False) -> None:
    """Be closed once every rank is gone, or `whatever` is left of them."""
    state = turn.state
    left = [known.rank for known in state.ranks if not known.gone]
    if state.phase is not Phase.CLOSING or (left and not whatever):
        return
    clear_timers(turn)
    turn.act(SetTimer(GONE, None))
    turn.record("generation", durable=True, event="closed", generation=state.generation)
    turn.change(phase=Phase.CLOSED, under=None)
    notes = tuple(f"rank {rank} was not reaped in time" for rank in left)
    if state.under is not None and state.under.command.id not in state.replies:
        result = Result.APPLIED if state.under.command.kind is Kind.CLOSE else Result.CANCELLED
        turn.settle(state.under.command, result, step=state.step, notes=(*state.under.notes, *notes))
    for command in turn.state.queue:
        turn.settle(command, Result.APPLIED if command.kind is Kind.CLOSE else Result.CANCELLED)
    turn.change(queue=())
