"""Which command is taken up when: order, idempotency, fences and withdrawal (SE-4, SE-7, SE-20, SE-29)."""

from msgspec.structs import replace

from paritrace.session.commands import LIVE, Body, Command, Kind, Reason, Reply, Result
from paritrace.session.coordinator_ends import (
    GONE,
    await_gone,
    close_at_once,
    close_if_all_gone,
    enter_closing,
    is_at_once,
    nobody_awaits_strangers,
)
from paritrace.session.coordinator_events import Deny, Settle, StartRanks, Survey, Surveyed
from paritrace.session.coordinator_record import COORDINATOR, Known, Phase, Turn, ours
from paritrace.session.coordinator_rounds import begin, resume, undo
from paritrace.session.messages import RoundName
from paritrace.session.rounds import prepares
from paritrace.session.states import RankState

SURVEY = "survey"  # the timer of looking at a checkpoint before a generation is begun for it


def on_asked(turn: Turn, command: Command, /) -> None:
    """Queue a command, or tell at once what is known of its id."""
    state = turn.state
    earlier = state.asked.get(command.id)
    if earlier is not None and _content(earlier) != _content(command):
        words = f"the id {command.id} was used for another command ({earlier.kind.value})"
        turn.act(Deny(command, Reason(COORDINATOR, "id_reused", words)))
        return
    if earlier is not None:
        if command.id in state.replies:
            turn.act(Settle(state.replies[command.id]))
        return
    turn.change(asked={**state.asked, command.id: command})
    if state.over and command.kind is Kind.CLOSE:
        turn.settle(command, Result.APPLIED)
    elif state.phase in {Phase.CLOSING, Phase.CLOSED} and command.kind is not Kind.CLOSE:
        turn.settle(command, Result.CANCELLED, reasons=ours("closing", f"the session is {state.phase.value}"))
    else:
        turn.change(queue=(*turn.state.queue, command))


def on_withdrawn(turn: Turn, command_id: str, /) -> None:
    """Withdraw what is still queued; of what is under way the result is not known yet."""
    state = turn.state
    queued = next((command for command in state.queue if command.id == command_id), None)
    if command_id in state.replies:
        turn.act(Settle(state.replies[command_id]))
    elif queued is not None:
        turn.change(queue=tuple(command for command in state.queue if command.id != command_id))
        turn.settle(queued, Result.CANCELLED, reasons=ours("withdrawn", "withdrawn before it was taken up"))
    elif command_id in state.asked:
        command = state.asked[command_id]
        words = "it is under way: ask again by its id"
        turn.act(
            Settle(
                Reply(
                    command_id=command_id,
                    kind=command.kind,
                    result=Result.UNKNOWN,
                    generation=state.generation,
                    epoch=state.epoch,
                    reasons=ours("under_way", words),
                )
            )
        )


def proceed(turn: Turn) -> None:
    """Where nothing is under way, take up the next command; where none waits, let a parked run go on.

    It goes on, too, where the next one prepares inputs: that may take long, and is done while steps go on (SE-6).
    """
    _close_at_once_if_asked(turn)
    while turn.state.under is None:
        command = _due(turn)
        if command is None or (turn.state.parked and prepares(command.kind, command.body)):
            break
        _take(turn, command)
    if any(one.kind is Kind.CLOSE and not _fenced(turn, one) for one in turn.state.queue):
        _give_up_preparing(turn)
    state = turn.state
    if state.under is None and state.parked and state.phase is Phase.READY:
        resume(turn)


def _give_up_preparing(turn: Turn) -> None:
    """A preparation on the host may take half an hour, and has changed nothing: a close does not wait for it."""
    under = turn.state.under
    if under is not None and under.name is RoundName.PREPARE:
        undo(turn, Result.CANCELLED, ours("closing", "a close was asked for while it was prepared"))


def _close_at_once_if_asked(turn: Turn) -> None:
    """A close that waits for nothing overtakes what waits, and what is under way."""
    under = turn.state.under
    if under is not None and is_at_once(under.command):
        return
    for command in turn.state.queue:
        if is_at_once(command):
            turn.change(queue=tuple(one for one in turn.state.queue if one.id != command.id))
            cancelled = _fenced(turn, command, at_once=True)
            if not cancelled:
                close_at_once(turn, command)
                return
            turn.settle(command, Result.CANCELLED, reasons=cancelled)


def _due(turn: Turn) -> Command | None:
    """Return the command that may be taken up now; while ranks start that is a close only."""
    state = turn.state
    if state.phase in {Phase.CLOSING, Phase.CLOSED}:
        return None
    if state.phase is Phase.STARTING or state.starting is not None:
        return next((command for command in state.queue if command.kind is Kind.CLOSE), None)
    return state.queue[0] if state.queue else None


def _take(turn: Turn, command: Command) -> None:
    turn.change(queue=tuple(one for one in turn.state.queue if one.id != command.id))
    cancelled = _fenced(turn, command)
    if cancelled:
        turn.settle(command, Result.CANCELLED, reasons=cancelled)
    elif command.kind is Kind.CLOSE:
        _close(turn, command)
    elif turn.state.phase is Phase.ERROR:
        _recover(turn, command)
    elif command.kind not in LIVE and turn.state.target is not None:
        words = f"{command.kind.value} needs a session without pending steps; stop it first"
        turn.settle(command, Result.REFUSED, reasons=ours("running", words))
    else:
        begin(turn, command)


def _fenced(turn: Turn, command: Command, *, at_once: bool = False) -> tuple[Reason, ...]:
    """Return every fence that does not hold, with both values.

    The step of a run is looked at once it has parked; `at_once`: it never does, and the last that all said is taken.
    """
    state, fences = turn.state, command.fences
    present = [("generation", fences.generation, state.generation)]
    present.append(("config_revision", fences.config_revision, state.config_revision))
    if not state.running:
        present.append(("step", fences.step, state.step))
    elif at_once:
        present.append(("step", fences.step, min(known.step for known in state.ranks)))
    return tuple(
        Reason(COORDINATOR, f"fence_{name}", f"expected {name} {expected}, it is {now}")
        for name, expected, now in present
        if expected not in (None, now)
    )


def _close(turn: Turn, command: Command) -> None:
    was_error = turn.state.phase is Phase.ERROR
    if was_error:
        turn.record("command", durable=True, id=command.id, kind=command.kind.value, body=command.body)
    enter_closing(turn, "the session is closed")
    nobody_awaits_strangers(turn)
    if was_error:
        turn.change(queue=(command, *turn.state.queue))
        await_gone(turn)
        close_if_all_gone(turn)
    else:
        begin(turn, command)
        close_if_all_gone(turn)


def _recover(turn: Turn, command: Command) -> None:
    """Start a new generation, the only way on from an error but closing (SE-20)."""
    state = turn.state
    if not (command.kind is Kind.REBUILD or (command.kind is Kind.LOAD and command.body.get("rebuild"))):
        words = "this generation has ended in an error: rebuild, load with rebuild, or close"
        turn.settle(command, Result.REFUSED, reasons=(*ours("session_in_error", words), *state.error))
    elif not state.stops_ranks:
        words = "the ranks belong to whoever launched them: launch them again"
        turn.settle(command, Result.REFUSED, reasons=ours("launcher_owned", words))
    else:
        turn.record("command", durable=True, id=command.id, kind=command.kind.value, body=command.body)
        turn.change(starting=command)
        if command.kind is Kind.LOAD:
            turn.act(Survey(command.id, str(command.body["checkpoint"])))
            turn.set_timer(SURVEY, "inspect")
        else:
            _start_once_gone(turn)


def on_surveyed(turn: Turn, event: Surveyed, /) -> None:
    """Refuse what cannot be loaded, while the failed generation and its report are still the present ones (SE-7)."""
    starting = turn.state.starting
    if starting is None or starting.id != event.command_id or turn.state.phase is not Phase.ERROR:
        return
    turn.set_timer(SURVEY, None)
    if event.reasons:
        turn.change(starting=None)
        turn.settle(starting, Result.REFUSED, reasons=event.reasons)
    else:
        _start_once_gone(turn)


def _start_once_gone(turn: Turn) -> None:
    turn.change(awaiting_gone=True)
    await_gone(turn)
    start_again(turn)


def start_again(turn: Turn, *, whatever: bool = False) -> None:
    """Start the next generation once the ranks of this one are gone, or `whatever` is left of them."""
    state = turn.state
    if state.starting is None or not state.awaiting_gone:
        return
    if whatever or all(known.gone for known in state.ranks):
        turn.set_timer(GONE, None)
        start(turn, state.starting.body, generation=state.generation + 1)


def start(turn: Turn, body: Body, *, generation: int) -> None:
    """Have ranks started; under `attach` they come when they come, and are waited for from the first on."""
    state = turn.state
    turn.change(
        generation=generation,
        phase=Phase.STARTING,
        ranks=tuple(Known(rank) for rank in range(state.world_size)),
        epoch=0,
        step=0,
        target=None,
        parked=False,
        ended=frozenset(),
        awaiting_gone=False,
        state=RankState.LOADING,
        state_epoch=0,
        error=(),
    )
    turn.record(
        "generation", durable=True, event="started", generation=generation, config_revision=state.config_revision
    )
    turn.act(StartRanks(generation, body))
    if state.stops_ranks:
        turn.set_timer("join", "join")
        turn.set_timer("start", "start")


def _content(command: Command) -> Command:
    """Return what makes a command the same: all of it but the caller's patience."""
    return replace(command, timeout_seconds=None)
