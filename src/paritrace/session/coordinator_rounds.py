"""The rounds of the command under way: sent to all, answered by all, and what follows (SE-5 to SE-9)."""

from collections.abc import Callable
from types import MappingProxyType

from msgspec.structs import asdict

from paritrace.session.barrier import Barrier
from paritrace.session.commands import QUIESCENT, Body, Command, Kind, Reason, Reply, Result
from paritrace.session.coordinator_answers import apart, differing, refusals_of
from paritrace.session.coordinator_ends import close_if_all_gone, fail_stop
from paritrace.session.coordinator_events import Keep, Written
from paritrace.session.coordinator_lines import record_capture, record_inputs, record_run, to_keep, told_facts
from paritrace.session.coordinator_record import Turn, UnderWay, ours
from paritrace.session.messages import Answer, Round, RoundName, Verdict
from paritrace.session.rounds import BEFORE_BARRIER, CHANGES_RESIDENT, bound_of, rounds_of

ROUND = "round"  # the timer of the round under way
_UNDOING = frozenset({RoundName.RELEASE, RoundName.ABORT})
_ANSWERED_OR_ABORTED = BEFORE_BARRIER | {RoundName.VOTE}
"""Rounds whose silence aborts the command and changes nothing; silence in any other ends in a fail-stop (SE-21)."""


def begin(turn: Turn, command: Command, /) -> None:
    """Take up a command: its first round goes out."""
    state = turn.state
    first, *rest = rounds_of(command.kind, command.body, running=state.running)
    under = UnderWay(command, tuple(rest), first, state.epoch + 1, body=_body_of(turn, command))
    turn.change(under=under, last=command)
    turn.record(
        "command",
        durable=True,
        id=command.id,
        kind=command.kind.value,
        body=command.body,
        fences={name: value for name, value in asdict(command.fences).items() if value is not None} or None,
    )
    _send(turn, first)


def resume(turn: Turn) -> None:
    """Admit the rest of the run again, under the present epoch and revision."""
    state = turn.state
    assert state.last is not None
    turn.change(
        under=UnderWay(state.last, (), RoundName.RESUME, state.epoch, voted=True),
        parked=False,
        run_epoch=state.epoch,
        ended=frozenset(),
    )
    _send(turn, RoundName.RESUME)


def undo(turn: Turn, result: Result, reasons: tuple[Reason, ...], /) -> None:
    """Take back the command under way everywhere: nothing resident has changed. It is settled once all have."""
    under = turn.under
    if under.command.kind is Kind.CLOSE:  # what cannot park is closed all the same
        turn.mark(rounds=())
        _send(turn, RoundName.CLOSE)
        return
    if under.command.kind is Kind.RUN:
        turn.change(target=None)
    reply = Reply(
        command_id=under.command.id,
        kind=under.command.kind,
        result=result,
        generation=turn.state.generation,
        epoch=under.epoch if under.voted else turn.state.epoch,
        reasons=reasons,
        notes=under.notes,
    )
    turn.mark(reply=reply, rounds=(), keeping=False)
    if turn.state.parked and not under.voted:  # released ranks go on by themselves, and may end before all have said so
        turn.change(parked=False, run_epoch=turn.state.epoch, ended=frozenset())
    _send(turn, RoundName.ABORT if under.voted else RoundName.RELEASE)


def on_answer(turn: Turn, answer: Answer, /) -> None:
    """Take in a rank's answer; once all ranks have answered, go on."""
    under = turn.state.under
    turn.know(
        answer.rank,
        state=answer.state,
        epoch=answer.epoch,
        step=answer.step,
        config_revision=answer.config_revision,
    )
    if answer.verdict is Verdict.VIOLATION:
        fail_stop(turn, "barrier", f"rank {answer.rank}: {_words(answer.reasons)}", answer.reasons)
    elif under is None or under.command.id != answer.command_id or under.name is not answer.name:
        return
    elif answer.verdict is Verdict.FAILED and under.name is not RoundName.CLOSE:
        fail_stop(turn, "rank_failed", f"rank {answer.rank}: {_words(answer.reasons)}", answer.reasons)
    else:
        answers = list(under.answers)
        answers[answer.rank] = answer
        turn.mark(answers=tuple(answers), notes=_added(under.notes, answer.notes))
        if under.name is RoundName.CLOSE:
            turn.know(answer.rank, leaving=True)
            turn.mark(notes=_added(turn.under.notes, tuple(f"rank {r.rank}: {r.words}" for r in answer.reasons)))
        elif answer.verdict is Verdict.REFUSED and under.name is RoundName.ACT:
            turn.set_timer(ROUND, "vote")  # the others may wait for it in a collective
        complete_if_all(turn)


def complete_if_all(turn: Turn) -> None:
    """Go on where every rank that takes part has answered."""
    under = turn.state.under
    if under is None or under.keeping:
        return
    missing = [k for k in turn.state.ranks if under.answers[k.rank] is None and not (k.gone or k.leaving)]
    if not missing:
        _COMPLETED[under.name](turn)


def on_silence(turn: Turn) -> None:
    """The round was not answered in time by all: abort where nothing has changed, else fail-stop (SE-21)."""
    under = turn.state.under
    if under is None:
        return
    silent = [known.rank for known in turn.state.ranks if under.answers[known.rank] is None and not known.leaving]
    words = f"no answer to {under.name.value} of {under.command.kind.value} in time"
    if under.keeping:
        fail_stop(turn, "not_kept", "the manifest was not written in time")
    elif under.name in _ANSWERED_OR_ABORTED:
        undo(turn, Result.REFUSED, tuple(Reason(rank, "not_answered", words) for rank in silent))
    else:
        fail_stop(turn, "not_acknowledged", words, tuple(Reason(rank, "not_answered", words) for rank in silent))


def on_written(turn: Turn, event: Written, /) -> None:
    """The manifest of a save is on disk, or is not: then nothing of the save counts."""
    under = turn.state.under
    if under is None or not under.keeping or under.command.id != event.command_id:
        return
    turn.mark(keeping=False)
    if event.ok:
        turn.record("checkpoint", durable=True, event="saved", step=turn.state.step, **event.facts)
        _settle_applied(turn, {**told_facts(under), **event.facts})
    else:
        undo(turn, Result.REFUSED, ours("not_kept", event.words))


def _send(turn: Turn, name: RoundName) -> None:
    state, under = turn.state, turn.under
    if not under.voted and name in {RoundName.VOTE, RoundName.ABORT}:
        turn.mark(voted=True)
        turn.change(epoch=under.epoch)
        turn.record("epoch", epoch=under.epoch, id=under.command.id, kind=under.command.kind.value)
    turn.mark(name=name, answers=(None,) * state.world_size)
    turn.tell(
        Round(
            generation=state.generation,
            command_id=under.command.id,
            kind=under.command.kind,
            epoch=under.epoch,
            name=name,
            barrier=_barrier(turn) if name is RoundName.VOTE else None,
            step=_step_of(turn, name),
            body=_told_body(turn, name),
        )
    )
    turn.set_timer(ROUND, bound_of(under.command.kind, name))


def _barrier(turn: Turn) -> Barrier:
    state, under = turn.state, turn.under
    revisions = {known.config_revision for known in state.ranks}
    return Barrier(
        epoch=under.epoch,
        kind=under.command.kind,
        config_revision=state.config_revision if revisions == {state.config_revision} else None,
        pending=0 if under.command.kind in QUIESCENT else None,
    )


def _step_of(turn: Turn, name: RoundName) -> int | None:
    state, under = turn.state, turn.under
    if name is RoundName.PARK:
        return under.agreed
    if name is RoundName.RESUME:
        return state.target
    if name is RoundName.ACT and under.command.kind is Kind.RUN:
        return state.target
    return None


def _told_body(turn: Turn, name: RoundName) -> Body:
    return turn.under.body if name in {RoundName.PREPARE, RoundName.VOTE, RoundName.ACT, RoundName.PUBLISH} else {}


def _body_of(turn: Turn, command: Command) -> Body:
    if command.kind is Kind.PREVIEW:
        return {**command.body, "generation": turn.state.previews + 1}
    return command.body


def _next(turn: Turn) -> None:
    under = turn.under
    name, *rest = under.rounds
    turn.mark(rounds=tuple(rest))
    if name is RoundName.ACT and under.command.kind is Kind.RUN:
        target = turn.state.step + int(under.command.body["steps"])
        turn.change(target=target, parked=False, ended=frozenset(), run_epoch=turn.state.epoch)
    _send(turn, name)


def _given(turn: Turn) -> list[Answer]:
    return [answer for answer in turn.under.answers if answer is not None]


def _reserved(turn: Turn) -> None:
    answers = _given(turn)
    refusals = refusals_of(answers)
    if refusals or not answers:
        undo(turn, Result.REFUSED, refusals)
        return
    turn.mark(agreed=max(answer.step for answer in answers))
    _next(turn)


def _parked(turn: Turn) -> None:
    answers, under = _given(turn), turn.under
    refusals = refusals_of(answers)
    if refusals:
        undo(turn, Result.REFUSED, refusals)
        return
    steps = {answer.step for answer in answers}
    if steps != {under.agreed}:
        fail_stop(turn, "ranks_apart", f"ranks stopped at steps {sorted(steps)}, {under.agreed} was agreed")
        return
    assert under.agreed is not None
    if under.agreed == turn.state.target:
        _run_over(turn, under.agreed)
    turn.change(step=under.agreed)
    turn.change(parked=turn.state.target is not None)
    if turn.state.parked:
        record_run(turn, "parked", under.command.id)
    fence = under.command.fences.step
    if fence is not None and fence != under.agreed:
        undo(turn, Result.CANCELLED, ours("fence_step", f"expected step {fence}, the ranks are at {under.agreed}"))
    else:
        _next(turn)


def _voted(turn: Turn) -> None:
    answers, under = _given(turn), turn.under
    refusals = refusals_of(answers)
    turn.record(
        "vote",
        id=under.command.id,
        kind=under.command.kind.value,
        round=under.name.value,
        verdicts=[answer.verdict.value for answer in answers],
        digest=answers[0].digest if answers else None,
    )
    if refusals or not answers:
        undo(turn, Result.REFUSED, refusals)
        return
    turn.mark(facts=tuple(answer.facts for answer in answers), digest=answers[0].digest)
    _next(turn)


def _acted(turn: Turn) -> None:
    answers, under = _given(turn), turn.under
    kind = under.command.kind
    refused = [answer for answer in answers if answer.verdict is not Verdict.YES]
    if refused and kind in CHANGES_RESIDENT and len(refused) < len(answers):
        fail_stop(turn, "ranks_apart", "some ranks have changed, others refused", refusals_of(answers))
    elif refused:
        undo(turn, Result.REFUSED, refusals_of(answers))
    elif differing(answers) or len({(answer.step, answer.config_revision) for answer in answers}) > 1:
        words = f"the ranks disagree after {kind.value}: digests, steps or revisions"
        fail_stop(turn, "ranks_apart", words, differing(answers) or apart(answers))
    else:
        turn.mark(facts=tuple(answer.facts for answer in answers), digest=answers[0].digest or under.digest)
        _take_in(turn, answers[0])


def _take_in(turn: Turn, answer: Answer) -> None:
    under = turn.under
    kind, command_id = under.command.kind, under.command.id
    if answer.config_revision != turn.state.config_revision:
        turn.change(config_revision=answer.config_revision)
        turn.record("revision", revision=answer.config_revision, id=command_id, kind=kind.value, step=answer.step)
    if kind is Kind.RUN:
        record_run(turn, "admitted", command_id, schedule=under.body.get("schedule"))
    else:
        turn.change(step=answer.step)
    if kind in {Kind.CONFIGURE, Kind.REBUILD} and "inputs" in answer.facts:
        record_inputs(turn, answer.facts["inputs"].get("digest"))
    if kind is Kind.STOP:
        record_run(turn, "stopped", command_id)
        turn.change(target=None, parked=False)
    elif kind is Kind.LOAD:
        turn.record(
            "checkpoint",
            durable=True,
            event="loaded",
            name=answer.facts.get("name", under.body.get("checkpoint")),
            step=answer.step,
            digest=answer.facts.get("digest", under.digest),  # the checkpoint's own; what ranks agree on is the state's
            accepted=answer.facts.get("accepted"),
        )
    elif kind is Kind.PREVIEW:
        turn.change(previews=turn.state.previews + 1)
    elif kind is Kind.CAPTURE:
        record_capture(turn)
    if kind is Kind.SAVE:
        turn.mark(keeping=True)
        turn.act(Keep(command_id, to_keep(turn)))
        turn.set_timer(ROUND, "save")
    elif under.rounds:
        _next(turn)
    else:
        _settle_applied(turn, told_facts(turn.under))
        end_run_if_all(turn)


def _published(turn: Turn) -> None:
    answers, under = _given(turn), turn.under
    refusals = refusals_of(answers)
    if refusals:
        fail_stop(turn, "ranks_apart", "inputs were published on some ranks only", refusals)
        return
    record_inputs(turn, under.digest)
    _settle_applied(turn, told_facts(under))


def _undone(turn: Turn) -> None:
    under = turn.under
    refusals = refusals_of(_given(turn))
    if refusals:
        fail_stop(turn, "not_acknowledged", f"{under.name.value} was refused", refusals)
        return
    assert under.reply is not None
    turn.set_timer(ROUND, None)
    turn.change(under=None)
    turn.settle_as(under.reply)


def _resumed(turn: Turn) -> None:
    refusals = refusals_of(_given(turn))
    if refusals:
        fail_stop(turn, "not_acknowledged", "the rest of the run was not admitted", refusals)
        return
    turn.set_timer(ROUND, None)
    record_run(turn, "resumed", turn.under.command.id)
    turn.change(under=None)
    end_run_if_all(turn)


def _closed(turn: Turn) -> None:
    close_if_all_gone(turn)


_COMPLETED: MappingProxyType[RoundName, Callable[[Turn], None]] = MappingProxyType(
    {
        RoundName.RESERVE: _reserved,
        RoundName.PARK: _parked,
        RoundName.PREPARE: _voted,
        RoundName.VOTE: _voted,
        RoundName.ACT: _acted,
        RoundName.PUBLISH: _published,
        RoundName.RELEASE: _undone,
        RoundName.ABORT: _undone,
        RoundName.RESUME: _resumed,
        RoundName.CLOSE: _closed,
    }
)


def end_run_if_all(turn: Turn) -> None:
    """End the run where all ranks have come to its target, and have all said before that they step."""
    state = turn.state
    if state.target is not None and len(state.ended) == state.world_size:
        _run_over(turn, state.target)


def _run_over(turn: Turn, step: int) -> None:
    record_run(turn, "ended", None, step=step)
    turn.change(target=None, parked=False, step=step, ended=frozenset())


def _settle_applied(turn: Turn, facts: Body) -> None:
    under, state = turn.under, turn.state
    turn.set_timer(ROUND, None)
    turn.change(under=None)
    more = {**facts, "target": state.step + under.command.body["steps"]} if under.command.kind is Kind.RUN else facts
    turn.settle(under.command, Result.APPLIED, step=state.step, notes=under.notes, facts=more)


def _added(notes: tuple[str, ...], more: tuple[str, ...]) -> tuple[str, ...]:
    return (*notes, *(note for note in more if note not in notes))


def _words(reasons: tuple[Reason, ...]) -> str:
    return "; ".join(reason.words for reason in reasons) or "no reason was given"
