"""What ranks say unasked: that they have joined, built, ended, and live; and that they are gone (SE-12, SE-13)."""

from paritrace.session.commands import Reason, Result
from paritrace.session.coordinator_admission import start_again
from paritrace.session.coordinator_ends import close_if_all_gone, enter_closing, fail_stop
from paritrace.session.coordinator_events import Gone
from paritrace.session.coordinator_lines import record_run
from paritrace.session.coordinator_record import COORDINATOR, Known, Phase, Turn, ours
from paritrace.session.coordinator_rounds import complete_if_all, end_run_if_all, undo
from paritrace.session.health import judged
from paritrace.session.messages import Beat, Ended, Joined, RoundName
from paritrace.session.rounds import BEFORE_BARRIER, ENDLESS
from paritrace.session.states import RankState


def on_joined(turn: Turn, message: Joined, /) -> None:
    """A rank is there; once all are, only their building is waited for."""
    if turn.state.phase is not Phase.STARTING:
        return
    if not turn.state.stops_ranks and not any(known.joined for known in turn.state.ranks):
        turn.set_timer("join", "join")
        turn.set_timer("start", "start")
    turn.know(message.rank, joined=message, state=RankState.LOADING)
    if all(known.joined for known in turn.state.ranks):
        turn.set_timer("join", None)


def on_beat(turn: Turn, beat: Beat, /) -> None:
    """Keep the last that a rank said of itself. It tells of ends, too, should the word of one have been lost."""
    turn.know(beat.rank, beat=beat, state=beat.state, epoch=beat.epoch, step=beat.step)
    judged(turn, beat)
    if beat.state is RankState.IDLE:
        _on_target(turn, beat)
    elif beat.state is RankState.ERROR:
        words = f"rank {beat.rank}: it is in state {beat.state.value}"
        fail_stop(turn, "rank_failed", words, (Reason(beat.rank, "rank_failed", words),))


def on_ended(turn: Turn, ended: Ended, /) -> None:
    """A rank has built, has come to its target, has failed, or its loop is over."""
    turn.know(ended.rank, state=ended.state, epoch=ended.epoch, step=ended.step, config_revision=ended.config_revision)
    if ended.state is RankState.ERROR:
        reasons = ended.reasons or (Reason(ended.rank, "rank_failed", "no reason was given"),)
        fail_stop(turn, "rank_failed", f"rank {ended.rank}: {reasons[0].words}", reasons)
    elif ended.state is RankState.CLOSING:
        _on_loop_over(turn, ended)
    elif not turn.state.ranks[ended.rank].built:
        _on_built(turn, ended)
    else:
        _on_target(turn, ended)


def _on_target(turn: Turn, said: Ended | Beat) -> None:
    if said.step == turn.state.target and said.epoch == turn.state.run_epoch:
        turn.change(ended=turn.state.ended | {said.rank})
        if not _admitting(turn):
            end_run_if_all(turn)


def _admitting(turn: Turn) -> bool:
    """Return whether ranks are being told to step, and not all have said that they do."""
    under = turn.state.under
    return under is not None and under.name in {RoundName.ACT, RoundName.RESUME}


def _on_built(turn: Turn, ended: Ended) -> None:
    turn.know(ended.rank, built=True, running_already=ended.state is RankState.RUNNING)
    state = turn.state
    if state.phase is not Phase.STARTING or not all(known.built for known in state.ranks):
        return
    turn.set_timer("start", None)
    turn.set_timer("join", None)
    running = any(known.running_already for known in state.ranks)
    revisions, steps = {k.config_revision for k in state.ranks}, {k.step for k in state.ranks}
    if len(revisions) > 1 or (len(steps) > 1 and not running):
        fail_stop(turn, "ranks_apart", "the ranks differ after building", _apart(state.ranks))
        return
    (revision,) = revisions
    inputs = ended.facts.get("inputs", {})  # counted by the ranks, anew in each generation
    turn.change(
        phase=Phase.READY,
        config_revision=revision,
        step=max(steps),
        target=ENDLESS if running else None,
        run_epoch=state.epoch,
        inputs_digest=inputs.get("digest"),
        inputs_generation=inputs.get("generation", 0),
    )
    turn.record(
        "generation",
        durable=True,
        event="ready",
        generation=state.generation,
        config_revision=revision,
        step=max(steps),
        inputs_digest=turn.state.inputs_digest,
    )
    begun_from = ended.facts.get("start_from")
    if begun_from:
        told = {name: begun_from.get(name) for name in ("name", "digest", "accepted")}
        turn.record("checkpoint", durable=True, event="loaded", step=max(steps), **told)
    if running:  # somebody else's loop: its first stretch begins without a command
        record_run(turn, "admitted", None)
    if state.starting is not None:
        turn.change(starting=None)
        turn.settle(state.starting, Result.APPLIED, step=max(steps), facts=ended.facts)


def _apart(ranks: tuple[Known, ...]) -> tuple[Reason, ...]:
    return tuple(Reason(k.rank, "ranks_apart", f"step {k.step}, revision {k.config_revision}") for k in ranks)


def _on_loop_over(turn: Turn, ended: Ended) -> None:
    """Nothing more can be asked of that rank; the others are let go on, and told nothing more."""
    turn.know(ended.rank, leaving=True)
    if turn.state.phase in {Phase.ERROR, Phase.CLOSED}:
        return
    enter_closing(turn, "the loop is over")
    under = turn.state.under
    if under is not None and under.name in BEFORE_BARRIER and under.reply is None:
        undo(turn, Result.CANCELLED, ours("loop_over", "the loop ended before all ranks had parked"))
    complete_if_all(turn)


def on_gone(turn: Turn, event: Gone, /) -> None:
    """A process has ended: expected while closing, else the end of its generation."""
    if event.generation not in (None, turn.state.generation):
        return
    known = turn.state.ranks[event.rank]
    turn.know(event.rank, gone=True)
    if turn.state.phase in {Phase.STARTING, Phase.READY}:
        fail_stop(
            turn, "rank_ended", f"rank {event.rank}: {event.words}", (Reason(event.rank, "rank_ended", event.words),)
        )
    elif turn.state.phase is Phase.CLOSING and not known.leaving:
        turn.change(error=(*turn.state.error, Reason(COORDINATOR, "rank_ended", event.words)))
        complete_if_all(turn)
    close_if_all_gone(turn)
    start_again(turn)
