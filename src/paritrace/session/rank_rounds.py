"""How a rank meets each round of a command: who does it, what it changes, and what is answered (SE-4 to SE-7)."""

from collections.abc import Callable
from types import MappingProxyType

from paritrace.session.barrier import Violation, violation_of
from paritrace.session.commands import Kind, Reason
from paritrace.session.messages import Answer, Round, RoundName, Verdict
from paritrace.session.rank_events import Do, Done, Leave, Limit, Send
from paritrace.session.rank_record import ENDING, Turn
from paritrace.session.rounds import ADDS_REVISION, BEFORE_BARRIER, brings_inputs, is_work
from paritrace.session.states import RankState

_STATE_OF_VOTE = MappingProxyType({Kind.LOAD: RankState.LOADING, Kind.REBUILD: RankState.LOADING})
_STATE_OF_ACT = MappingProxyType(
    {
        Kind.LOAD: RankState.LOADING,
        Kind.REBUILD: RankState.LOADING,
        Kind.INPUTS: RankState.LOADING,  # and until they are published: nothing is admitted meanwhile (SE-30)
        Kind.SAVE: RankState.SAVING,
        Kind.PREVIEW: RankState.EXPORTING_PREVIEW,
    }
)
NEEDS = MappingProxyType(
    {
        Kind.CONFIGURE: "plan_config",
        Kind.SAVE: "save",
        Kind.LOAD: "inspect",
        Kind.INPUTS: "prepare_inputs",
        Kind.PREVIEW: "preview",
        Kind.REBUILD: "rebuild",
    }
)
"""The capability that a workload must have for a kind."""
_MENDS = MappingProxyType(
    {
        "plan_config": "a class has plan_config and apply_config for it; a loop, `config` and `configure` of steps",
        "save": "a class has save, inspect and apply for it; a loop saves by itself",
        "inspect": "a class has save, inspect and apply for it; a loop loads by itself",
        "prepare_inputs": "a class has prepare_inputs, install_inputs and publish_inputs for it",
        "preview": "a class has preview for it",
        "rebuild": "a class has rebuild for it; out of an error new ranks are started without it",
    }
)


def on_round(turn: Turn, message: Round, *, next_step: int) -> None:
    """Meet a round: answer it, have it done, or pass over what is of another generation or a late copy."""
    rank = turn.rank
    if message.generation != rank.generation or message.command_id in rank.over:
        return
    if rank.under is None or rank.under.id != message.command_id:
        turn.take_up(message.command_id, message.kind)
    under = turn.rank.under
    assert under is not None
    earlier = under.answer_to(message.name)
    if earlier is not None:
        turn.act(Send(earlier))
    elif under.doing is not message.name and not (under.void and message.name is not RoundName.RESUME):
        _meet(turn, message, next_step=next_step)


def _meet(turn: Turn, message: Round, *, next_step: int) -> None:
    rank, under = turn.rank, turn.rank.under
    assert under is not None
    if message.name is RoundName.CLOSE:
        _close(turn, message, next_step=next_step)
    elif rank.state in ENDING:
        _refuse(turn, message.name, "rank_ending", f"the rank is in state {rank.state.value}")
    elif message.epoch != (rank.epoch if under.voted else rank.epoch + 1):
        _violated(turn, message, Violation(rank.rank, "command_epoch", str(rank.epoch + 1), str(message.epoch)))
    elif message.name is RoundName.RESERVE:
        _reserve(turn, next_step)
    else:
        _MEETS[message.name](turn, message)


def _reserve(turn: Turn, next_step: int) -> None:
    rank = turn.rank
    if rank.state is RankState.RUNNING:
        turn.change(step=next_step)
        turn.mark(reserved=next_step)
        turn.act(Limit(next_step))
        _answer(turn, RoundName.RESERVE)
    elif rank.state is RankState.IDLE and rank.target is None:  # its run has ended by itself meanwhile
        _answer(turn, RoundName.RESERVE)
    else:
        _refuse(turn, RoundName.RESERVE, "rank_busy", f"the rank is in state {rank.state.value}")


def _park(turn: Turn, message: Round) -> None:
    rank, under = turn.rank, turn.rank.under
    assert under is not None
    assert message.step is not None
    if rank.state is RankState.RUNNING and under.reserved is not None and rank.target is not None:
        if not under.reserved <= message.step <= rank.target:
            _refuse(turn, RoundName.PARK, "step_passed", f"step {under.reserved} was reserved, not {message.step}")
            return
        turn.mark(park_at=message.step, doing=RoundName.PARK)
        turn.act(Limit(message.step))
    elif rank.state is RankState.IDLE:
        turn.mark(park_at=message.step, doing=RoundName.PARK)
    else:
        _refuse(turn, RoundName.PARK, "rank_busy", f"the rank is in state {rank.state.value}")
        return
    park_if_there(turn)
    if turn.rank.state is RankState.IDLE and turn.rank.under is not None and turn.rank.under.doing is RoundName.PARK:
        _refuse(turn, RoundName.PARK, "step_passed", f"the rank rests at step {rank.step}, not {message.step}")


def park_if_there(turn: Turn) -> None:
    """Answer PARK once the agreed step is reached with the device drained."""
    rank, under = turn.rank, turn.rank.under
    if under is None or under.doing is not RoundName.PARK or under.park_at is None:
        return
    if rank.state is RankState.RUNNING and rank.drained_at == under.park_at:
        turn.enter(RankState.IDLE)
        turn.change(step=under.park_at)
    if turn.rank.state is RankState.IDLE and turn.rank.step == under.park_at:
        _answer(turn, RoundName.PARK)


def _release(turn: Turn, message: Round) -> None:
    rank, under = turn.rank, turn.rank.under
    assert under is not None
    if under.voted:
        _violated(turn, message, Violation(rank.rank, "round", "abort", "release"))
        return
    _discard(turn)
    if rank.target is not None and rank.state is RankState.RUNNING and under.reserved is not None:
        turn.act(Limit(rank.target))
    elif rank.target is not None and rank.state is RankState.IDLE:
        turn.run_to(rank.target)
    turn.mark(void=True, doing=None)
    _answer(turn, RoundName.RELEASE)


def _prepare(turn: Turn, message: Round) -> None:
    if turn.rank.state not in {RankState.RUNNING, RankState.IDLE}:
        _refuse(turn, RoundName.PREPARE, "rank_busy", f"the rank is in state {turn.rank.state.value}")
    elif not _capable(turn, message):
        return
    else:
        _do(turn, message)


def _vote(turn: Turn, message: Round) -> None:
    rank = turn.rank
    assert message.barrier is not None
    violation = violation_of(message.barrier, rank.standing, rank=rank.rank)
    if violation is not None and (violation.field == "command_epoch" or rank.state is RankState.RUNNING):
        _violated(turn, message, violation)  # a step under the epoch of before would follow
        return
    turn.change(epoch=message.epoch)
    turn.mark(voted=True)
    if violation is not None:
        words = f"{violation.field}: expected {violation.expected}, received {violation.received}"
        _refuse(turn, RoundName.VOTE, "barrier", words, violation=violation)
    elif not _capable(turn, message):
        return
    elif is_work(message.kind, RoundName.VOTE):
        turn.enter(_STATE_OF_VOTE.get(message.kind, rank.state))
        _do(turn, message)
    else:
        _answer(turn, RoundName.VOTE)


def _act(turn: Turn, message: Round) -> None:
    if not _agreed(turn, RoundName.VOTE):
        _violated(turn, message, Violation(turn.rank.rank, "round", "vote", message.name.value))
    elif message.kind is Kind.RUN:
        assert message.step is not None
        turn.run_to(message.step)
        _answer(turn, RoundName.ACT)
    else:
        loading = brings_inputs(message.kind, message.body)  # as those that come alone, until they are published
        turn.enter(RankState.LOADING if loading else _STATE_OF_ACT.get(message.kind, turn.rank.state))
        _do(turn, message)


def _publish(turn: Turn, message: Round) -> None:
    if _agreed(turn, RoundName.ACT):
        _do(turn, message)
    else:
        _violated(turn, message, Violation(turn.rank.rank, "round", "act", message.name.value))


def _abort(turn: Turn, message: Round) -> None:
    """Discard; where the barrier was never delivered, the epoch advances by this instead (SE-5)."""
    rank = turn.rank
    if rank.state is RankState.RUNNING:
        _violated(turn, message, Violation(rank.rank, "kind", "a parked rank", message.name.value))
        return
    _discard(turn)
    turn.change(epoch=message.epoch)
    turn.enter(RankState.IDLE)
    turn.mark(voted=True, void=True, doing=None)
    _answer(turn, RoundName.ABORT)


def _resume(turn: Turn, message: Round) -> None:
    rank = turn.rank
    if rank.state is RankState.IDLE and rank.target is not None and message.step == rank.target:
        turn.run_to(rank.target)
        _answer(turn, RoundName.RESUME)
    else:
        _violated(turn, message, Violation(rank.rank, "target", str(rank.target), str(message.step)))


def _close(turn: Turn, message: Round, *, next_step: int) -> None:
    """Close in every state; of a rank that could not be parked before no step begins any more (SE-34)."""
    if turn.rank.state is RankState.RUNNING:
        turn.act(Limit(next_step))
    turn.enter(RankState.CLOSING)
    turn.change(epoch=max(turn.rank.epoch, message.epoch), target=None)
    _do(turn, message)


_MEETS: MappingProxyType[RoundName, Callable[[Turn, Round], None]] = MappingProxyType(
    {
        RoundName.PARK: _park,
        RoundName.RELEASE: _release,
        RoundName.PREPARE: _prepare,
        RoundName.VOTE: _vote,
        RoundName.ACT: _act,
        RoundName.PUBLISH: _publish,
        RoundName.ABORT: _abort,
        RoundName.RESUME: _resume,
    }
)


def on_done(turn: Turn, done: Done) -> None:
    """Answer what the work thread has done; what was discarded meanwhile is passed over."""
    under = turn.rank.under
    if under is None or under.id != done.command_id or under.doing is not done.name:
        return
    if done.name is RoundName.CLOSE:
        _answer(turn, done.name, done=done, verdict=Verdict.YES if done.ok else Verdict.FAILED)
        turn.act(Leave("closed"))
    elif turn.rank.state in ENDING:
        turn.mark(doing=None)
    elif done.ok:
        _take_in(turn, done, kind=under.kind)
        _answer(turn, done.name, done=done)
    elif done.released or done.name is RoundName.PUBLISH:
        turn.enter(RankState.ERROR)
        turn.change(target=None)
        _answer(turn, done.name, done=done, verdict=Verdict.FAILED)
    else:
        if done.name is not RoundName.PREPARE:
            turn.enter(RankState.IDLE)
        _answer(turn, done.name, done=done, verdict=Verdict.REFUSED)


def _take_in(turn: Turn, done: Done, *, kind: Kind) -> None:
    rank = turn.rank
    if done.name is RoundName.ACT:
        if kind is not Kind.INPUTS:
            turn.enter(RankState.IDLE)
        if kind is Kind.STOP:
            turn.change(target=None)
        revision = rank.config_revision + 1 if kind in ADDS_REVISION else rank.config_revision
        turn.change(
            step=rank.step if done.step is None else done.step,
            config_revision=revision if done.config_revision is None else done.config_revision,
        )
    elif done.name is RoundName.PUBLISH:
        turn.enter(RankState.IDLE)


def _capable(turn: Turn, message: Round) -> bool:
    needed = {NEEDS.get(message.kind), "prepare_inputs" if message.name is RoundName.PREPARE else None} - {None}
    missing = sorted(str(name) for name in needed if name not in turn.rank.capabilities)
    if missing:
        mends = "; ".join(_MENDS[name] for name in missing)
        _refuse(turn, message.name, "not_capable", f"the workload has no {' and no '.join(missing)}: {mends}")
    return not missing


def _agreed(turn: Turn, name: RoundName) -> bool:
    answer = None if turn.rank.under is None else turn.rank.under.answer_to(name)
    return answer is not None and answer.verdict is Verdict.YES


def _discard(turn: Turn) -> None:
    """Have the work thread let go of what it was given for this command, where it was given anything."""
    under = turn.rank.under
    assert under is not None
    prepared = any(answer.name not in BEFORE_BARRIER or answer.name is RoundName.PREPARE for answer in under.answers)
    if (prepared or under.doing not in {None, RoundName.PARK}) and is_work(under.kind, RoundName.VOTE):
        turn.act(Do(under.id, under.kind, RoundName.ABORT, {}))


def _do(turn: Turn, message: Round) -> None:
    turn.mark(doing=message.name)
    turn.act(Do(message.command_id, message.kind, message.name, message.body))


def _refuse(turn: Turn, name: RoundName, code: str, words: str, *, violation: Violation | None = None) -> None:
    reason = Reason(turn.rank.rank, code, words)
    _send(turn, name, Verdict.REFUSED, reasons=(reason,), violation=violation)


def _violated(turn: Turn, message: Round, violation: Violation) -> None:
    """Say so and take part in nothing more: the one thing that must not follow is a step (SE-4)."""
    words = f"{violation.field}: expected {violation.expected}, received {violation.received}"
    turn.enter(RankState.ERROR)
    turn.change(target=None)
    reason = Reason(turn.rank.rank, "barrier", words)
    _send(turn, message.name, Verdict.VIOLATION, reasons=(reason,), violation=violation)
    turn.act(Leave(f"{message.name.value} of {message.command_id}: {words}"))


def _answer(turn: Turn, name: RoundName, *, done: Done | None = None, verdict: Verdict = Verdict.YES) -> None:
    _send(turn, name, verdict, done=done)


def _send(
    turn: Turn,
    name: RoundName,
    verdict: Verdict,
    *,
    done: Done | None = None,
    reasons: tuple[Reason, ...] = (),
    violation: Violation | None = None,
) -> None:
    rank, under = turn.rank, turn.rank.under
    assert under is not None
    answer = Answer(
        generation=rank.generation,
        command_id=under.id,
        epoch=rank.epoch,
        name=name,
        rank=rank.rank,
        verdict=verdict,
        state=rank.state,
        step=rank.step,
        config_revision=rank.config_revision,
        digest=None if done is None else done.digest,
        reasons=reasons if done is None else done.reasons,
        violation=violation,
        notes=() if done is None else done.notes,
        facts={} if done is None else done.facts,
    )
    turn.mark(answers=(*under.answers, answer), doing=None if under.doing is name else under.doing)
    turn.act(Send(answer))
