"""The rule that makes a status from what the coordinator holds, by whoever reads it, off the main thread (SE-14)."""

from typing import Any

from msgspec import Struct, ValidationError, convert
from msgspec.structs import replace

from paritrace.session.commands import Body
from paritrace.session.coordinator_machine import view
from paritrace.session.coordinator_record import Coordinator, Known, Phase
from paritrace.session.engines.seam import TurnedAway
from paritrace.session.messages import Beat
from paritrace.session.rounds import ENDLESS
from paritrace.session.states import RankState
from paritrace.session.status import CheckpointState, RankView, Status

_NS = 1e9
ETA_FROM_STEPS = 10  # fewer tell nothing of the next ones: the first compiles, caches are cold


class Seen(Struct, frozen=True):
    """All that a status is made of, swapped as a whole. `heard_ns`: when a rank last wrote, by its number."""

    session_id: str
    engine: str
    machine: Coordinator
    heard_ns: dict[int, int]
    warnings: tuple[str, ...] = ()
    root_cause: str | None = None
    failure_report: str | None = None
    turned_away: tuple[TurnedAway, ...] = ()


def status_of(seen: Seen, /, *, now_ns: int) -> Status:
    """Return the status at a moment of the monotonic clock: ages and elapsed times are of that moment."""
    machine = seen.machine
    first = machine.ranks[0].beat
    job = view(machine)
    step = _step(machine)
    status = Status(
        session_id=seen.session_id,
        generation=machine.generation,
        engine=seen.engine,
        world_size=machine.world_size,
        state=_state(machine, job.state),
        agreed=job.agreed,
        laggard=job.laggard,
        coordinator_operation=job.operation,
        epoch=machine.epoch,
        config_revision=machine.config_revision,
        ranks=tuple(_view(known, seen.heard_ns.get(known.rank), now_ns) for known in machine.ranks),
        phase=_phase(machine, first),
        step=step,
        target=None if machine.target == ENDLESS else machine.target,
        pending=_pending(machine, step),
        command=_under_way(machine),
        queued=len(machine.queue),
        warnings=seen.warnings,
        error=machine.error,
        root_cause=seen.root_cause,
        failure_report=seen.failure_report,
        inputs=_inputs(machine),
        capabilities=machine.ranks[0].beat.capabilities if machine.ranks[0].beat is not None else (),
        control=machine.control,
        turned_away=seen.turned_away,
    )
    return status if first is None else _with_beat(status, first, _age(seen.heard_ns.get(0), now_ns) or 0.0)


def scheduled_in(seen: Seen, /) -> Body:
    """Return the values that the schedule of a run has put in force, as rank 0 said last."""
    first = seen.machine.ranks[0].beat
    return {} if first is None else first.scheduled


def _phase(machine: Coordinator, first: Beat | None) -> str:
    """What rank 0 is at, unless it has changed its state since it said so."""
    said = first.phase if first is not None and first.state is machine.ranks[0].state else ""
    return said or machine.phase.value


def _with_beat(status: Status, beat: Beat, age: float) -> Status:
    """What rank 0 says of itself, and stands for the job."""
    return replace(
        status,
        progress=_progress(beat.progress, age),
        metrics=beat.metrics,
        metrics_step=beat.metrics_step,
        checkpoint_state=_checkpoint(beat.checkpoint),
        preview=beat.preview,
        inputs=_inputs_by(beat, status.inputs),
    )


def _inputs_by(beat: Beat, known: Body) -> Body:
    """The beat's words, but for one of before the inputs that all ranks have by now."""
    stale = "digest" in known and known["digest"] != beat.inputs.get("digest")
    return known if stale or not beat.inputs else beat.inputs


def _state(machine: Coordinator, agreed: RankState) -> RankState:
    match machine.phase:
        case Phase.ERROR:
            return RankState.ERROR
        case Phase.CLOSING | Phase.CLOSED:
            return RankState.CLOSING
        case Phase.STARTING | Phase.READY:
            return agreed


def _step(machine: Coordinator) -> int:
    """Where all ranks have come to: while steps go on, and after a failure, the lowest that a rank has said."""
    if machine.target is None and machine.phase is not Phase.ERROR:
        return machine.step
    return max(machine.step, min(known.step for known in machine.ranks))


def _pending(machine: Coordinator, step: int) -> int:
    target = machine.target
    return 0 if target is None or target == ENDLESS else max(0, target - step)


def _under_way(machine: Coordinator) -> Body | None:
    under = machine.under
    if under is None:
        return None
    return {"id": under.command.id, "kind": under.command.kind.value, "round": under.name.value}


def _inputs(machine: Coordinator) -> Body:
    if machine.inputs_digest is None:
        return {}
    return {"digest": machine.inputs_digest, "generation": machine.inputs_generation}


def _view(known: Known, heard_ns: int | None, now_ns: int) -> RankView:
    age = _age(heard_ns, now_ns)
    idle = known.beat.progress_age_seconds if known.beat is not None else None
    return RankView(
        rank=known.rank,
        state=known.state,
        epoch=known.epoch,
        step=known.step,
        pid=known.joined.pid if known.joined is not None else None,
        heartbeat_age_seconds=age,
        progress_age_seconds=None if idle is None or age is None else idle + age,
        findings=known.findings,
        preview=known.beat.preview if known.beat is not None else {},
    )


def _age(heard_ns: int | None, now_ns: int) -> float | None:
    return None if heard_ns is None else max(0.0, (now_ns - heard_ns) / _NS)


def _progress(progress: Body, age: float) -> Body:
    """What was told, with the time since; when it ends is said only where there is a rate to tell it from."""
    elapsed, step, total = (progress.get(name) for name in ("elapsed_seconds", "step", "total"))
    if not isinstance(elapsed, int | float):
        return progress
    told: dict[str, Any] = progress | {"elapsed_seconds": elapsed + age}
    if isinstance(step, int) and isinstance(total, int) and step >= ETA_FROM_STEPS and elapsed > 0:
        told["eta_seconds"] = max(0.0, elapsed / step * (total - step) - age)
    return told


def _checkpoint(told: Body) -> CheckpointState | None:
    try:
        return convert(told, CheckpointState) if told else None
    except ValidationError:
        return None
