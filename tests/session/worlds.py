"""A session without processes: the two machines, shells of them that are pure, and every thing that can happen next.

A world is a value. `moves_of` lists what can happen in it, `after` gives the world after one of these. Lines keep their
order, as pipes and sockets do, but for copies of messages, which come whenever they like; all else has no order. A step
is a collective: it ends once all ranks have begun it. Faults (loss, a copy, a refusal, a failure, a death, a timer that
runs out, a process or a thread that does nothing any more) are moves that are paid from a purse, so that an exploration
is finite. Heartbeats and timers come by themselves where nothing else can happen any more.
"""

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from paritrace.session import coordinator_machine, rank_machine
from paritrace.session.bounds import bounds_with
from paritrace.session.commands import Command, Kind, Reason, Reply, Result
from paritrace.session.coordinator_events import (
    Asked,
    CoordinatorEvent,
    Elapsed,
    FailStop,
    Gone,
    Heard,
    Keep,
    Opened,
    SetTimer,
    Settle,
    StartRanks,
    Survey,
    Surveyed,
    Tell,
    Withdrawn,
    Written,
)
from paritrace.session.coordinator_record import Coordinator, Phase
from paritrace.session.messages import Answer, Beat, FromRank, Joined, Round, RoundName, ToRank, Verdict
from paritrace.session.rank_events import (
    Broke,
    Built,
    Do,
    Done,
    Finished,
    Leave,
    Limit,
    RankEvent,
    Received,
    RunUntil,
    Send,
    Stepped,
)
from paritrace.session.rank_record import Rank
from paritrace.session.rounds import ENDLESS
from paritrace.session.states import RankState

CAPABILITIES = ("plan_config", "save", "inspect", "prepare_inputs", "preview", "rebuild")
PAID_BY = {
    "lose-down": "loss",
    "lose-up": "loss",
    "copy-down": "copy",
    "copy-up": "copy",
    "die": "death",
    "break": "broken_step",
    "refuse": "refusal",
    "unprepared": "refusal",
    "keep-fails": "refusal",
    "survey-fails": "refusal",
    "fail": "failure",
    "freeze": "freeze",
    "stick": "stick",
    "timer": "timeout",
}
"""By which purse a fault is paid."""
_HELD_BY = {"freeze": "frozen", "stick": "stuck"}
PURE = frozenset({RoundName.VOTE})


class Script(Struct, frozen=True):
    """What is asked, in this order, and which faults may happen how often in all."""

    commands: tuple[Command, ...]
    withdraw: tuple[str, ...] = ()
    loss: int = 0
    copy: int = 0
    refusal: int = 0
    failure: int = 0
    death: int = 0
    timeout: int = 0  # timers that run out although something else could happen still
    broken_step: int = 0
    freeze: int = 0  # a process that does nothing any more, and does not end
    stick: int = 0  # a work thread that does nothing any more, while its control thread answers
    stops_ranks: bool = True
    loop_steps: int | None = None  # ranks run somebody else's loop, this long
    late_rank: int | None = None  # its gate lets one step more pass than it may: what an exploration has to find


class Process(Struct, frozen=True):
    """A rank's shell: its gate, its work in hand, its lines."""

    machine: Rank
    next: int = 0  # the first step that has not begun
    in_step: bool = False
    limit: int = 0
    told: int | None = None
    work: tuple[Do, ...] = ()
    preparing: tuple[Do, ...] = ()  # on a thread of its own, whatever the work does
    words: tuple[RankEvent, ...] = ()  # what its work thread has said, and its control thread not yet heard
    down: tuple[ToRank, ...] = ()
    up: tuple[FromRank, ...] = ()
    late_down: tuple[ToRank, ...] = ()  # copies, which come whenever they like
    late_up: tuple[FromRank, ...] = ()
    building: bool = True
    alive: bool = True
    said_gone: bool = False
    frozen: bool = False
    stuck: bool = False
    broken: bool = False  # a step of it raised: no other one begins
    let_go: bool = False  # control was given up (attach): it steps on as it would by itself


class World(Struct, frozen=True):
    """Everything there is, at one moment."""

    coordinator: Coordinator
    processes: tuple[Process, ...]
    asked: int = 0
    withdrawn: int = 0
    timers: frozenset[str] = frozenset()
    keeping: tuple[str, ...] = ()
    surveying: tuple[str, ...] = ()
    settled: tuple[tuple[str, str], ...] = ()
    acted: tuple[tuple[str, int], ...] = ()  # what was done first by any rank, and at which step: the others must agree
    script: Script = Script(())
    faultless: bool = False


Move = tuple[str, int, str]


class Wrong(AssertionError):  # noqa: N818  it says what the world is
    """An invariant does not hold."""


def opened(script: Script, *, world_size: int) -> World:
    """Return a world in which ranks have been started."""
    state = coordinator_machine.began(
        world_size=world_size, generation=0, bounds=bounds_with({}), stops_ranks=script.stops_ranks
    )
    faults = (getattr(script, fault) for fault in PAID_BY.values())
    world = World(state, (), script=script, faultless=not any(faults))
    return _coordinate(world, Opened())


def moves_of(world: World) -> Iterator[Move]:
    """Yield what can happen next."""
    script = world.script
    if world.asked < len(script.commands):
        yield ("ask", world.asked, "")
    if world.withdrawn < len(script.withdraw) and script.withdraw[world.withdrawn] in world.coordinator.asked:
        yield ("withdraw", world.withdrawn, "")
    for command_id in world.keeping:
        yield ("keep", 0, command_id)
        if script.refusal:
            yield ("keep-fails", 0, command_id)
    for command_id in world.surveying:
        yield ("survey", 0, command_id)
        if script.refusal:
            yield ("survey-fails", 0, command_id)
    if script.timeout:
        yield from _timers_of(world)
    elif not world.faultless and not _anything(world):
        yield from list(_beats_of(world)) or _timers_of(world)
    for rank, process in enumerate(world.processes):
        yield from _moves_of_rank(world, rank, process)


def _timers_of(world: World) -> list[Move]:
    return [("timer", 0, timer) for timer in sorted(world.timers)]


def _beats_of(world: World) -> Iterator[Move]:
    """Yield the heartbeats that tell something new."""
    for rank, process in enumerate(world.processes):
        known, machine = world.coordinator.ranks[rank], process.machine
        news = (machine.state, machine.epoch, process.next) != (known.state, known.epoch, known.step)
        if news and process.alive and not (process.frozen or process.let_go):
            yield ("beat", rank, "")


def _anything(world: World) -> bool:
    """Whether anything but a timer can happen: where nothing can, timers do run out."""
    if world.asked < len(world.script.commands) or world.keeping or world.surveying:
        return True
    return any(
        next((move for move in _moves_of_rank(world, rank, process) if move[0] not in PAID_BY), None)
        for rank, process in enumerate(world.processes)
    )


def _moves_of_rank(world: World, rank: int, process: Process) -> Iterator[Move]:
    names: list[tuple[str, bool]] = [
        ("hear", bool(process.up)),
        ("lose-up", bool(process.up)),
        ("copy-up", bool(process.up)),
        ("late-up", bool(process.late_up)),
        ("gone", not (process.up or process.alive or process.said_gone)),
    ]
    awake = process.alive and not process.frozen
    names += [
        ("die", process.alive),
        ("freeze", awake),
        ("receive", awake and bool(process.down)),
        ("late-down", awake and bool(process.late_down)),
        ("word", awake and bool(process.words)),
        ("lose-down", awake and bool(process.down)),
        ("copy-down", awake and bool(process.down)),
        ("stick", awake and not process.stuck),
    ]
    yield from ((name, rank, "") for name, possible in names if possible and _affordable(world, name))
    if awake and process.preparing:
        yield from ((name, rank, "") for name in ("prepared", "unprepared") if _affordable(world, name))
    if awake and not process.stuck:
        works = _moves_of_work(world, process)
        yield from ((name, rank, "") for name in works if _affordable(world, name))


def _affordable(world: World, name: str) -> bool:
    return name not in PAID_BY or getattr(world.script, PAID_BY[name]) > 0


def _moves_of_work(world: World, process: Process) -> tuple[str, ...]:
    if process.building:
        return ("build",)
    if process.in_step:
        if all(p.next >= process.next for p in world.processes):  # a collective: nobody ends it alone
            return ("end", "break")
        closing = process.machine.state is RankState.CLOSING  # closing ends what it waits for, by an exception
        return ("end",) if closing else ()
    if process.work:
        return ("do", "refuse") if process.work[0].name in PURE else ("do", "refuse", "fail")
    if process.broken:
        return ()
    if process.next == world.script.loop_steps:
        said = any(isinstance(word, Finished) for word in process.words)
        over = (said or process.machine.state is RankState.CLOSING) and not process.let_go
        return () if over else ("finish",)
    if process.next < process.limit:
        return ("begin",)
    told = process.told == process.next or process.machine.target is None
    return () if told or process.next != process.limit else ("tell",)


def after(world: World, move: Move) -> World:
    """Return the world after a move. Raises Wrong where an invariant is broken by it."""
    name, index, words = move
    script = world.script
    match name:
        case "ask":
            command = script.commands[index]
            return _coordinate(replace(world, asked=index + 1), Asked(command))
        case "withdraw":
            return _coordinate(replace(world, withdrawn=index + 1), Withdrawn(script.withdraw[index]))
        case "keep" | "keep-fails":
            world = replace(world, keeping=tuple(one for one in world.keeping if one != words))
            if name == "keep-fails":
                world = _paid(world, "refusal")
            return _coordinate(world, Written(words, ok=name == "keep", words="disk full"))
        case "survey" | "survey-fails":
            world = replace(world, surveying=tuple(one for one in world.surveying if one != words))
            if name == "survey":
                return _coordinate(world, Surveyed(words))
            return _coordinate(_paid(world, "refusal"), Surveyed(words, (Reason(-1, "injected", "injected"),)))
        case "timer":
            world = replace(_paid(world, "timeout"), timers=world.timers - {words})
            return _coordinate(world, Elapsed(words))
        case _:
            return _after_of_rank(world, index, name)


def _paid(world: World, fault: str) -> World:
    left = getattr(world.script, fault)
    return replace(world, script=replace(world.script, **{fault: max(0, left - 1)}))


def _after_of_rank(world: World, rank: int, name: str) -> World:
    process = world.processes[rank]
    match name:
        case "hear" | "late-up" | "gone" | "beat":
            return _after_of_hearing(world, rank, name)
        case "receive":
            world = _with(world, rank, replace(process, down=process.down[1:]))
            return _rank(world, rank, Received(process.down[0], process.next))
        case "late-down":
            world = _with(world, rank, replace(process, late_down=()))
            return _rank(world, rank, Received(process.late_down[0], process.next))
        case "word":
            world = _with(world, rank, replace(process, words=process.words[1:]))
            return _rank(world, rank, process.words[0])
        case "lose-up" | "copy-up" | "lose-down" | "copy-down":
            return _paid(_with(world, rank, _line_faulted(process, name)), PAID_BY[name])
        case "die":
            return _paid(_with(world, rank, _dead(process)), "death")
        case "freeze" | "stick":
            return _paid(_with(world, rank, replace(process, **{_HELD_BY[name]: True})), name)
        case _:
            return _after_of_work(world, rank, name)


def _after_of_hearing(world: World, rank: int, name: str) -> World:
    process = world.processes[rank]
    match name:
        case "hear":
            world = _with(world, rank, replace(process, up=process.up[1:]))
            return _coordinate(world, Heard(rank, process.up[0]))
        case "late-up":
            world = _with(world, rank, replace(process, late_up=()))
            return _coordinate(world, Heard(rank, process.late_up[0]))
        case "gone":
            return _coordinate(_with(world, rank, replace(process, said_gone=True)), Gone(rank, "its process ended"))
        case _:
            return _coordinate(world, Heard(rank, _beat(process)))


def _beat(process: Process) -> Beat:
    machine = process.machine
    return Beat(
        generation=machine.generation,
        rank=machine.rank,
        epoch=machine.epoch,
        state=machine.state,
        step=process.next,
        pending=machine.pending,
        config_revision=machine.config_revision,
    )


def _line_faulted(process: Process, fault: str) -> Process:
    """Return a process whose next message is lost, or comes once more, at any time."""
    what, line = fault.split("-")
    first, *later = process.up if line == "up" else process.down
    return replace(process, **({f"late_{line}": (first,)} if what == "copy" else {line: tuple(later)}))


def _dead(process: Process) -> Process:
    """Return what is left of a process: what it has written, and how far it came."""
    machine = rank_machine.began(rank=process.machine.rank, world_size=process.machine.world_size, generation=0)
    left = Process(machine, process.next, up=process.up, late_up=process.late_up, said_gone=process.said_gone)
    return replace(left, building=False, alive=False)


def _after_of_work(world: World, rank: int, name: str) -> World:
    process = world.processes[rank]
    reason = (Reason(rank, "injected", "injected"),)
    match name:
        case "build":
            target = None if world.script.loop_steps is None else ENDLESS
            return _say(_with(world, rank, replace(process, building=False)), rank, Built(0, 0, target))
        case "finish" if process.let_go:
            return _with(world, rank, _dead(process))
        case "finish":
            return _say(world, rank, Finished(process.next))
        case "begin":
            _may_step(world, rank)
            return _with(world, rank, replace(process, next=process.next + 1, in_step=True))
        case "end":
            return _with(world, rank, replace(process, in_step=False))
        case "break":
            world = _with(world, rank, replace(process, in_step=False, broken=True))
            return _say(_paid(world, "broken_step"), rank, Broke(process.next - 1, reason))
        case "tell":
            world = _with(world, rank, replace(process, told=process.next))
            return _say(world, rank, Stepped(process.next))
        case "prepared" | "unprepared":
            do, *later = process.preparing
            ok = name == "prepared"
            world = _with(world if ok else _paid(world, "refusal"), rank, replace(process, preparing=tuple(later)))
            done = Done(do.command_id, do.name, ok, digest="same" if ok else None, reasons=() if ok else reason)
            return _say(world, rank, done)
        case _:
            return _after_of_do(world, rank, name)


def _after_of_do(world: World, rank: int, name: str) -> World:
    process = world.processes[rank]
    reason = (Reason(rank, "injected", "injected"),)
    do, *rest = process.work
    if do.name in {RoundName.VOTE, RoundName.ACT, RoundName.PUBLISH}:
        world = _at_one_step(world, f"{do.command_id} {do.name.value}", process.next)
    world = _with(world, rank, replace(process, work=tuple(rest)))
    if name == "do":
        return _say(world, rank, Done(do.command_id, do.name, True, digest="same"))
    if name == "refuse":
        return _say(_paid(world, "refusal"), rank, Done(do.command_id, do.name, False, reasons=reason))
    return _say(_paid(world, "failure"), rank, Done(do.command_id, do.name, False, released=True, reasons=reason))


def _say(world: World, rank: int, word: RankEvent) -> World:
    process = world.processes[rank]
    return _with(world, rank, replace(process, words=(*process.words, word)))


def _ended(world: World, process: Process) -> Process:
    """Return a process that was told to leave: it ends, or, where it is somebody else's, steps on as it likes."""
    if world.script.stops_ranks:
        return _dead(process)
    return (
        replace(process, let_go=True, limit=ENDLESS, down=(), late_down=(), work=(), preparing=(), words=())
        if process.alive
        else process
    )


def _may_step(world: World, rank: int) -> None:
    """No rank steps but under the epoch and revision that its run was admitted under, and within its target."""
    machine = world.processes[rank].machine
    if world.processes[rank].let_go:
        return
    if machine.state is not RankState.RUNNING or machine.target is None:
        raise Wrong(f"rank {rank} begins step {world.processes[rank].next} in state {machine.state}")
    if (machine.run_epoch, machine.run_revision) != (machine.epoch, machine.config_revision):
        raise Wrong(f"rank {rank} steps under epoch {machine.epoch}, admitted under {machine.run_epoch}")
    if world.processes[rank].next >= machine.target:
        raise Wrong(f"rank {rank} steps past its target")


def _at_one_step(world: World, what: str, step: int) -> World:
    """Keep at which step something was done first; whoever does it at another is apart from the rest."""
    first = dict(world.acted).get(what)
    if first not in (None, step):
        raise Wrong(f"{what} at step {step}, by another rank at step {first}")
    return world if first is not None else replace(world, acted=(*world.acted, (what, step)))


def _said(process: Process, message: FromRank) -> None:
    """A rank that says that it has parked is parked: between two steps, at the agreed one."""
    if not isinstance(message, Answer) or message.name is not RoundName.PARK or message.verdict is not Verdict.YES:
        return
    if process.in_step or process.next != message.step:
        raise Wrong(f"rank {message.rank} says that it parked at {message.step}, it comes to {process.next}")


def _with(world: World, rank: int, process: Process) -> World:
    processes = list(world.processes)
    processes[rank] = process
    return replace(world, processes=tuple(processes))


def _rank(world: World, rank: int, event: RankEvent) -> World:
    process = world.processes[rank]
    before = process.machine.under.answers if process.machine.under else ()
    machine, actions = rank_machine.step(process.machine, event)
    process = replace(process, machine=machine)
    for action in actions:
        match action:
            case Send():
                if not isinstance(event, Received) or action.message not in before:
                    _said(process, action.message)
                process = replace(process, up=(*process.up, action.message))
            case Do(name=RoundName.PREPARE):
                process = replace(process, preparing=(*process.preparing, action))
            case Do():
                process = replace(process, work=(*process.work, action))
            case Limit():
                if action.step < process.next:
                    raise Wrong(f"rank {rank} is limited to step {action.step}, it has begun {process.next - 1}")
                late = 1 if world.script.late_rank == rank else 0
                process = replace(process, limit=action.step + late)
            case RunUntil():
                if isinstance(event, Received) and isinstance(event.message, Round):
                    what = f"{event.message.command_id} {event.message.name.value}"
                    world = _at_one_step(world, what, process.next)
                process = replace(process, limit=action.target, told=None)
            case Leave():
                process = _ended(world, process)
    return _with(world, rank, process)


def _coordinate(world: World, event: CoordinatorEvent) -> World:
    state, actions = coordinator_machine.step(world.coordinator, event)
    world = replace(world, coordinator=state)
    if state.parked and state.under is not None and state.under.name is RoundName.PREPARE:
        raise Wrong(f"{state.under.command.id} is prepared while ranks are parked")
    told = {action.reply.command_id for action in actions if isinstance(action, Settle)}
    if isinstance(event, Withdrawn) and event.command_id not in told:
        raise Wrong(f"{event.command_id} was withdrawn and nothing is told of it")
    for action in actions:
        match action:
            case Tell():
                process = world.processes[action.rank]
                if process.alive and not process.let_go:
                    world = _with(world, action.rank, replace(process, down=(*process.down, action.message)))
            case Settle():
                world = _settled(world, action.reply)
            case SetTimer():
                if ":" in action.timer:  # beats are not told here
                    continue
                on = world.timers | {action.timer} if action.seconds is not None else world.timers - {action.timer}
                world = replace(world, timers=on)
            case Keep() | Survey():
                asked = "keeping" if isinstance(action, Keep) else "surveying"
                world = replace(world, **{asked: (*getattr(world, asked), action.command_id)})
            case FailStop():
                world = replace(world, processes=tuple(_ended(world, p) for p in world.processes))
            case StartRanks():
                world = _started(world, action.generation)
            case _:
                pass
    return world


def _settled(world: World, reply: Reply) -> World:
    before = dict(world.settled).get(reply.command_id)
    if reply.result is Result.UNKNOWN:
        return world
    if before is not None and before != reply.result.value:
        raise Wrong(f"{reply.command_id} was settled as {before}, then as {reply.result.value}")
    if before is not None:
        return world
    return replace(world, settled=(*world.settled, (reply.command_id, reply.result.value)))


def _started(world: World, generation: int) -> World:
    size = world.coordinator.world_size
    machines = [
        rank_machine.began(rank=rank, world_size=size, generation=generation, capabilities=CAPABILITIES)
        for rank in range(size)
    ]
    late = [process.late_up for process in world.processes] or [()] * size  # those of the generation before, too
    processes = (Process(m, up=(_joined(m),), late_up=late[m.rank]) for m in machines)
    return replace(world, processes=tuple(processes))


def _joined(machine: Rank) -> Joined:
    return Joined(
        machine.generation, machine.rank, machine.world_size, "job", "token", 1, "host", "boot", 1, CAPABILITIES
    )


def _steps(world: World) -> set[int]:
    return {process.next for process in world.processes}


def check_end(world: World) -> None:
    """Nothing can happen any more: every waiter has its result, and no rank is left waiting for another."""
    unsettled = [one.id for one in world.script.commands if one.id not in dict(world.settled)]
    if unsettled:
        raise Wrong(f"nothing can happen any more, yet {unsettled} wait")
    waiting = [
        process.machine.rank
        for process in world.processes
        if process.alive and (process.in_step or process.let_go or process.machine.state is RankState.RUNNING)
    ]
    held = any(p.frozen or p.stuck or not (p.alive or world.script.stops_ranks) for p in world.processes)
    if waiting and not held:  # what is stuck is a finding; what somebody else has launched, nobody here ends
        raise Wrong(f"nothing can happen any more, yet ranks {waiting} are within a run")
    state = world.coordinator
    if state.phase is Phase.READY and not held and (state.target is not None or _steps(world) != {state.step}):
        raise Wrong(f"the ranks have come to {_steps(world)}, their coordinator believes {state.step}")
    closing = any(one.kind is Kind.CLOSE for one in world.script.commands)
    if closing and not world.coordinator.over:
        raise Wrong(f"nothing can happen any more, yet the session is {world.coordinator.phase}")
