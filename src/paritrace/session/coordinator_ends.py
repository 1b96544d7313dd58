"""How a generation ends: by a fail-stop, or closed, with every waiter told (SE-7, SE-12, SE-20)."""

from paritrace.session.commands import Command, Kind, Reason, Result
from paritrace.session.coordinator_events import FailStop, SetTimer
from paritrace.session.coordinator_record import Phase, Turn, UnderWay, ours
from paritrace.session.directory import failure_name
from paritrace.session.messages import RoundName
from paritrace.session.rounds import BEFORE_BARRIER

GONE = "gone"  # the timer of waiting for killed ranks
_ROUND_TIMERS = ("round", "join", "start", "survey")
_OVER = frozenset({Phase.ERROR, Phase.CLOSED})
_CHANGES_NOTHING = BEFORE_BARRIER | {RoundName.VOTE}


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
    """Close from now on: whatever waits is cancelled, and whoever waits for a new generation."""
    turn.change(phase=Phase.CLOSING)
    starting = turn.state.starting
    if starting is not None:
        turn.change(starting=None, awaiting_gone=False)
        turn.settle(starting, Result.CANCELLED, reasons=ours("closing", why))
    _cancel_queue(turn, why)


def nobody_awaits_strangers(turn: Turn) -> None:
    """Under attach, who never dialled in is nobody's to wait for, and trains on if it comes."""
    if not turn.state.stops_ranks:
        for known in turn.state.ranks:
            turn.know(known.rank, gone=known.gone or known.joined is None)


def is_at_once(command: Command, /) -> bool:
    """Return whether a command is a close that waits for nothing."""
    return command.kind is Kind.CLOSE and bool(command.body.get("now"))


def close_at_once(turn: Turn, command: Command, /) -> None:
    """Close whatever is under way: no rank is asked, all are told to end, and killed within the bounds (SE-21)."""
    turn.record("command", durable=True, id=command.id, kind=command.kind.value, body=command.body)
    nobody_awaits_strangers(turn)
    left = [known.rank for known in turn.state.ranks if not known.gone]
    closing = _given_up(turn)
    enter_closing(turn, "the session was closed at once")
    clear_timers(turn)
    for rank in left:
        turn.know(rank, leaving=True)
    state = turn.state
    what = "ended without waiting" if state.stops_ranks else "control was given up"
    who = f"{'rank' if len(left) == 1 else 'ranks'} {', '.join(map(str, left))}"
    notes = (f"{what}: {who}; {failure_name(state.generation)} says what each was at",) if left else ()
    under = UnderWay(command, (), RoundName.CLOSE, state.epoch, answers=(None,) * state.world_size, notes=notes)
    turn.change(under=under, queue=(*closing, *state.queue), target=None, parked=False)
    if left:
        steps = [known.step for known in state.ranks]
        turn.record("generation", durable=True, event="ended_at_once", generation=state.generation, steps=steps)
        turn.act(FailStop("the session was closed at once", "closed_at_once"))
        turn.act(SetTimer(GONE, state.bounds["term_grace"] + state.bounds["reap"]))
    close_if_all_gone(turn)


def _given_up(turn: Turn) -> tuple[Command, ...]:
    """Settle the command under way, whose ranks are not waited for; another close is returned, and told with this."""
    under = turn.state.under
    turn.change(under=None)
    if under is None or under.name is RoundName.RESUME:  # what it is resumed for has its result
        return ()
    if under.command.kind is Kind.CLOSE:
        return (under.command,)
    if under.reply is not None:
        turn.settle_as(under.reply)
    elif under.name in _CHANGES_NOTHING:
        reasons = ours("closed_at_once", f"the session was closed at once, before {under.command.kind.value} had begun")
        turn.settle(under.command, Result.CANCELLED, reasons=reasons, notes=under.notes)
    else:
        reasons = ours("closed_at_once", f"the session was closed at once, within {under.name.value} of it")
        turn.settle(under.command, Result.FAILED, reasons=reasons, notes=under.notes)
    return ()


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
    what = "was not reaped in time" if state.stops_ranks else "has not answered, and trains on"
    notes = tuple(f"rank {rank} {what}" for rank in left)
    if state.under is not None and state.under.command.id not in state.replies:
        result = Result.APPLIED if state.under.command.kind is Kind.CLOSE else Result.CANCELLED
        step = None if is_at_once(state.under.command) else state.step  # each rank was where it was
        turn.settle(state.under.command, result, step=step, notes=(*state.under.notes, *notes))
    for command in turn.state.queue:
        turn.settle(command, Result.APPLIED if command.kind is Kind.CLOSE else Result.CANCELLED)
    turn.change(queue=())
