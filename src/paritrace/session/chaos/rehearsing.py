"""Deals each injury to a session of the user's workload, and measures what was promised for it (SE-19)."""

import random
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from paritrace.clock import SYSTEM, Clock
from paritrace.session.chaos.injuries import (
    PROMISES,
    Injury,
    Outcome,
    Promise,
    Rehearsal,
    bound_of,
    chosen,
    named,
    timed,
)
from paritrace.session.chaos.patient import ENDLESS_STEPS, Patient, send
from paritrace.session.client import Client, NotAppliedError
from paritrace.session.commands import Kind, Result
from paritrace.session.coordinator.opening_request import Opening
from paritrace.session.states import RankState

MOST_HOLD_SECONDS = 0.02  # words to one rank are held up so long at most while a stop goes out
CHECKPOINT = "rehearsal"
WATCH_FACTOR = 3.0  # a promise that is broken is watched for so many times its bound, to say by how much


class Plan(Struct, frozen=True):
    """What to rehearse: an opening whose directory is not used, injuries (all where none is named), how many stops."""

    opening: Opening
    injuries: tuple[Injury, ...] = ()
    num_stops: int = 100
    seed: int = 0


def rehearse(plan: Plan, folder: Path, *, tell: Callable[[str], None], clock: Clock = SYSTEM) -> Rehearsal:
    """Rehearse each injury in a session of its own below `folder`; their directories stay.

    Raises:
        HostError: Failed: a session cannot be started, or `rehearsal_stuck`: it takes no step in time.
        RequestError: Refused: the workload or an option is wrong.
    """
    opening = plan.opening
    with Patient(replace(opening, directory=str((folder / "unhurt").absolute())), clock=clock) as unhurt:
        capabilities = unhurt.status().capabilities
    injuries, skipped = chosen(plan.injuries, world_size=opening.ranks, capabilities=capabilities)
    outcomes: list[Outcome] = []
    for injury in injuries:
        tell(f"rehearsing {injury.value}")
        with Patient(replace(opening, directory=str((folder / injury.value).absolute())), clock=clock) as patient:
            patient.take_steps()
            outcomes += _inflicted(patient, plan, injury)
    return Rehearsal(opening.workload, opening.ranks, tuple(outcomes), skipped)


def _inflicted(patient: Patient, plan: Plan, injury: Injury) -> list[Outcome]:
    """The outcomes of an injury; a command that was not applied breaks the first promise that was still to be kept."""
    found: list[Outcome] = []
    try:
        found.extend(_INFLICT[injury](patient, plan))
    except NotAppliedError as error:
        words = "; ".join((error.message, *error.details))
        found.append(Outcome(injury, PROMISES[injury][len(found)], False, None, None, words))
    return found


def _measured(patient: Patient, injury: Injury, kept: tuple[Promise, Callable[[], bool]], since_ns: int) -> Outcome:
    promise, condition = kept
    most = (bound_of(promise, patient.bounds) or 0.0) * WATCH_FACTOR
    seconds = patient.seconds_until(condition, most=most, since_ns=since_ns)
    words = "" if seconds is not None else f"not within {most:g} s"
    return timed(injury, promise, seconds, bounds=patient.bounds, words=words)


def _kill(patient: Patient, plan: Plan) -> Iterator[Outcome]:
    yield from _killed(patient, Injury.KILL, [plan.opening.ranks - 1])


def _kill_two(patient: Patient, plan: Plan) -> Iterator[Outcome]:
    yield from _killed(patient, Injury.KILL_TWO, [0, plan.opening.ranks - 1])


def _killed(patient: Patient, injury: Injury, ranks: list[int]) -> Iterator[Outcome]:
    blow = patient.now_ns()
    for rank in ranks:
        send(patient.pid_of(rank), signal.SIGKILL)
    yield _measured(patient, injury, (Promise.KNOWN, patient.in_error), blow)
    yield _measured(patient, injury, (Promise.GONE, patient.all_gone), blow)
    patient.seconds_until(lambda: patient.status().root_cause is not None, most=patient.bounds["slack"])
    yield named(injury, patient.status().root_cause, killed=ranks)


def _freeze(patient: Patient, plan: Plan) -> Iterator[Outcome]:
    rank, blow = plan.opening.ranks - 1, patient.now_ns()
    send(patient.pid_of(rank), signal.SIGSTOP)
    yield _measured(patient, Injury.FREEZE, (Promise.FLAGGED, lambda: _is_flagged(patient, rank)), blow)
    thawed = patient.now_ns()
    send(patient.pid_of(rank), signal.SIGCONT)
    goes_on = (Promise.GOES_ON, lambda: _stopped(patient.client) is not None)
    yield _measured(patient, Injury.FREEZE, goes_on, thawed)


def _is_flagged(patient: Patient, rank: int) -> bool:
    return any("unresponsive" in words for words in patient.status().ranks[rank].findings)


def _stops(patient: Patient, plan: Plan) -> Iterator[Outcome]:
    """Words to one rank, another each time, are held up by stopping its process for some milliseconds."""
    drawn = random.Random(plan.seed)
    slowest, words = 0.0, ""
    for number in range(plan.num_stops):
        pid = patient.pid_of(drawn.randrange(plan.opening.ranks))
        hold = threading.Timer(drawn.uniform(0.0, MOST_HOLD_SECONDS), send, (pid, signal.SIGCONT))
        send(pid, signal.SIGSTOP)
        hold.start()
        seconds = patient.seconds_until(lambda: _stopped(patient.client) is not None, most=0.0)
        hold.join()
        steps = {one.step for one in patient.status().ranks}
        if seconds is None or len(steps) > 1:
            words = f"stop {number + 1} of {plan.num_stops}: " + ("not applied" if seconds is None else f"at {steps}")
            break
        slowest = max(slowest, seconds)
        patient.client.command(Kind.RUN, {"steps": ENDLESS_STEPS, "autosave": False})
    yield timed(
        Injury.STOPS,
        Promise.SAME_STEP,
        None if words else slowest,
        bounds=patient.bounds,
        words=words or f"{plan.num_stops} stops, the slowest in {slowest * 1000:.0f} ms",
    )


def _stopped(client: Client) -> int | None:
    reply = client.ask(Kind.STOP, {})
    return reply.step if reply.result is Result.APPLIED else None


def _kill_in_load(patient: Patient, plan: Plan) -> Iterator[Outcome]:
    rank = plan.opening.ranks - 1
    saved = patient.client.command(Kind.SAVE, {"name": CHECKPOINT})
    patient.client.command(Kind.STOP, {})
    loading = threading.Thread(target=_load, args=(patient.client.directory,), daemon=True)
    loading.start()
    patient.seconds_until(  # a load that is over already is hurt right behind it
        lambda: patient.status().state is RankState.LOADING or not loading.is_alive(), most=patient.bounds["inspect"]
    )
    blow = patient.now_ns()
    send(patient.pid_of(rank), signal.SIGKILL)
    yield _measured(patient, Injury.KILL_IN_LOAD, (Promise.KNOWN, patient.in_error), blow)
    yield _measured(patient, Injury.KILL_IN_LOAD, (Promise.GONE, patient.all_gone), blow)
    loading.join(patient.bounds["load"])
    again: list[int | None] = []
    seconds = patient.seconds_until(lambda: _loaded_again(patient, again), most=0.0)
    stands = again[-1]
    yield timed(
        Injury.KILL_IN_LOAD,
        Promise.LOADS_AGAIN,
        seconds if stands == saved.step else None,
        bounds=patient.bounds,
        words=f"saved before step {saved.step}, stands before step {stands}",
    )


def _load(directory: Path) -> None:
    """What becomes of it is told by the session: a client of its own, since it is another thread."""
    with Client(directory) as client:
        client.ask(Kind.LOAD, {"checkpoint": CHECKPOINT})


def _loaded_again(patient: Patient, again: list[int | None]) -> bool:
    reply = patient.client.ask(Kind.LOAD, {"checkpoint": CHECKPOINT, "rebuild": True})
    again.append(patient.status().step)
    return reply.result is Result.APPLIED


def _coordinator(patient: Patient, plan: Plan) -> Iterator[Outcome]:
    del plan
    pid, blow = patient.coordinator(), patient.now_ns()
    send(pid, signal.SIGKILL)
    yield _measured(patient, Injury.COORDINATOR, (Promise.GONE, patient.all_gone), blow)


_INFLICT = MappingProxyType(
    {
        Injury.STOPS: _stops,
        Injury.KILL: _kill,
        Injury.KILL_TWO: _kill_two,
        Injury.FREEZE: _freeze,
        Injury.KILL_IN_LOAD: _kill_in_load,
        Injury.COORDINATOR: _coordinator,
    }
)
