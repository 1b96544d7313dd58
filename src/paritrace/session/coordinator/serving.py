"""A coordinator from its start to its end: owns the directory, says what was in flight, serves until closed (SE-18)."""

import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from paritrace.clock import SYSTEM, Clock
from paritrace.errors import RequestError
from paritrace.evidence.ids import new_run_id
from paritrace.loopback.listening import HOST, bound
from paritrace.process.identity import own_identity
from paritrace.session.bounds import BOUNDS, bounds_with
from paritrace.session.checkpoint_choice import Wanted
from paritrace.session.commands import Kind, Reason, Reply, Result
from paritrace.session.coordinator.announcing import Announcer
from paritrace.session.coordinator.beginnings import Beginnings
from paritrace.session.coordinator.books import Books
from paritrace.session.coordinator.configurations import Configurations
from paritrace.session.coordinator.desk import Desk
from paritrace.session.coordinator.engines import engine_of
from paritrace.session.coordinator.failing import FailedGeneration
from paritrace.session.coordinator.generations import Generations
from paritrace.session.coordinator.http.serving import Serving
from paritrace.session.coordinator.interrupts import closing_on_interrupts
from paritrace.session.coordinator.journaling import JournalWriter
from paritrace.session.coordinator.keeping import Keeping
from paritrace.session.coordinator.ledger import Ledger
from paritrace.session.coordinator.loop import Loop, Parts
from paritrace.session.coordinator.opening_request import Opening
from paritrace.session.coordinator.owning import owned, write_session, write_token
from paritrace.session.coordinator.ring import Ring
from paritrace.session.coordinator.sampling import SampleWriter
from paritrace.session.coordinator.surveying import Surveying
from paritrace.session.coordinator.trying import tried
from paritrace.session.coordinator.untold import untold_autosaves
from paritrace.session.coordinator_events import Opened
from paritrace.session.coordinator_machine import began
from paritrace.session.coordinator_record import COORDINATOR
from paritrace.session.directory import SessionRecord
from paritrace.session.journal import CLOSED, FORMAT, OPENED, VERSION
from paritrace.session.opening import read_journal
from paritrace.session.replaying import InFlight, Replayed, recalled, replayed

COORDINATOR_ENDED = "coordinator_ended"


class Begun(Struct, frozen=True):
    """A coordinator that has begun. `in_flight`: what an earlier one of this directory had not finished."""

    record: SessionRecord
    in_flight: tuple[InFlight, ...]


class _Owned(Struct, frozen=True):
    """What a coordinator has once the directory is its own."""

    opening: Opening
    record: SessionRecord
    before: Replayed
    books: Books
    samples: SampleWriter
    ledger: Ledger


def serve(opening: Opening, /, *, begun: Callable[[Begun], None], announcer: Announcer, clock: Clock = SYSTEM) -> None:
    """Be a session's coordinator until the session is closed. Called on the main thread, which starts the ranks.

    Args:
        begun: Told once the directory is owned and the address is known; ranks are not yet started.
        announcer: Told how it goes.

    Raises:
        HostError: Refused, `session_owned`, `port_taken`.
        RequestError: Refused, `not_a_session`, `no_such_engine`, `bad_listen`, `bad_bound`.
        EvidenceError: Refused: the directory's journal cannot be read.
    """
    bounds = checked_bounds(opening.bounds)
    make = engine_of(opening.engine, listen=opening.listen)
    directory = Path(opening.directory)
    with ExitStack() as opened:
        opened.enter_context(owned(directory))
        journal = read_journal(directory)
        before = replayed(journal)
        listening = opened.enter_context(bound(opening.port))
        record = _record(opening, before, port=int(listening.getsockname()[1]), bounds=bounds, clock=clock)
        token = write_token(directory)
        write_session(directory, record)
        sequence = journal.lines[-1].sequence if journal.lines else 0
        books = Books(JournalWriter(directory, sequence=sequence, clock=clock), Ring(), clock=clock)
        opened.callback(books.close)
        samples = SampleWriter(directory, clock=clock)
        opened.callback(samples.close)
        ledger = Ledger(before.commands, before.replies, recall=lambda one: recalled(read_journal(directory), one))
        for facts in untold_autosaves(directory, journal.lines, generation=before.generation):
            books.line(
                "checkpoint", facts, generation=before.generation
            )  # its coordinator was killed: before ours opens
        own = _Owned(opening, record, before, books, samples, ledger)
        _open(own)
        begun(Begun(record, before.in_flight))
        generations = Generations(opening, session_id=record.session_id, token=token, make=make)
        opened.callback(generations.end)
        loop, desk = _loop(own, generations, clock=clock)
        serving = Serving(desk, listening, token=token)
        opened.callback(serving.end)
        interrupts = opened.enter_context(closing_on_interrupts(generations, directory))
        loop.take(Opened())
        serving.start()
        while not loop.machine.over:
            loop.turn()
            interrupts.look(desk)
            announcer.look(desk, answers=serving.answers)
        desk.end()
        loop.settle_configurations(at_once=True)
        _settle_what_is_left(ledger, loop)
        books.line(CLOSED, {}, generation=loop.machine.generation, durable=True)
    announcer.ended()


def checked_bounds(given: dict[str, float], /) -> dict[str, float]:
    """Return every bound by its name.

    Raises:
        RequestError: Refused, `bad_bound`.
    """
    names = {one.name for one in BOUNDS}
    wrong = [name for name, seconds in given.items() if name not in names or not 0 <= seconds < 1e9]
    if wrong:
        raise RequestError(
            f"{', '.join(wrong)}: no bound of a session, or no number of seconds",
            code="bad_bound",
            fix=f"the bounds are {', '.join(sorted(names))}",
        )
    return bounds_with(given)


def _record(opening: Opening, before: Replayed, *, port: int, bounds: dict[str, float], clock: Clock) -> SessionRecord:
    now = clock.wall_ns()
    return SessionRecord(
        session_id=before.session_id or new_run_id(unix_ns=now, random=os.urandom(10)),
        engine=opening.engine,
        workload=opening.workload,
        arguments=opening.arguments,
        world_size=opening.ranks,
        owner=own_identity(),
        host=HOST,
        port=port,
        created_unix_ns=now,
        bounds=bounds,
    )


def _open(begun: _Owned) -> None:
    """Write this coordinator's first line; what an earlier one had not finished is cancelled, and said (SE-18)."""
    opening, record, before, books = begun.opening, begun.record, begun.before, begun.books
    told = to_builtins(record) | {"format": FORMAT, "version": VERSION}
    told["in_flight"] = [one.id for one in before.in_flight]
    told |= {"start_from": opening.start_from, "autosave_every": opening.autosave_every, "config": opening.config}
    books.line(OPENED, told, generation=before.generation, durable=True)
    for one in before.in_flight:
        words = f"its coordinator ended before the result was known; last: {one.last}"
        reply = Reply(
            command_id=one.id,
            kind=one.kind,
            result=Result.CANCELLED,
            generation=one.generation,
            epoch=0,
            reasons=(Reason(COORDINATOR, COORDINATOR_ENDED, words),),
        )
        reasons = [f"{COORDINATOR}: {COORDINATOR_ENDED}: {words}"]
        facts = {"id": one.id, "kind": one.kind.value, "result": reply.result.value, "reasons": reasons}
        books.line("result", facts, generation=one.generation, durable=True)
        begun.ledger.settle(reply)


def _loop(begun: _Owned, generations: Generations, *, clock: Clock) -> tuple[Loop, Desk]:
    opening, record, books = begun.opening, begun.record, begun.books
    configurations = Configurations(Path(opening.directory), opening.config)
    before = begun.before
    beginnings = Beginnings(
        opening, configurations, revision=before.config_revision, inputs_digest=before.inputs_digest
    )
    machine = began(
        world_size=opening.ranks,
        generation=begun.before.generation + 1,
        bounds=record.bounds,
        config_revision=beginnings.first_revision,
        stops_ranks=generations.stops_ranks,
    )
    loops: list[Loop] = []
    desk = Desk(
        Path(opening.directory),
        ledger=begun.ledger,
        ring=books.ring,
        bounds=tuple(replace(one, seconds=record.bounds[one.name]) for one in BOUNDS),
        wake=generations.wake,
        trying=lambda command: tried(loops[0].machine, command),
        document=configurations.document,
        clock=clock,
    )
    parts = Parts(
        session_id=record.session_id,
        engine=opening.engine,
        generations=generations,
        books=books,
        samples=begun.samples,
        ledger=begun.ledger,
        desk=desk,
        configurations=configurations,
        failed=FailedGeneration(
            generations, books, session_id=record.session_id, directory=opening.directory, clock=clock
        ),
        keep=Keeping(Path(opening.directory)),
        survey=Surveying(Path(opening.directory), Wanted(opening.workload, opening.ranks), tell=desk.tell),
        beginning=beginnings.of,
    )
    loops.append(Loop(machine, parts, clock=clock))
    return loops[0], desk


def _settle_what_is_left(ledger: Ledger, loop: Loop) -> None:
    """Whoever still waits is told: a command that came while the session closed."""
    for command in ledger.unsettled:
        ledger.settle(
            Reply(
                command_id=command.id,
                kind=command.kind,
                result=Result.APPLIED if command.kind is Kind.CLOSE else Result.CANCELLED,
                generation=loop.machine.generation,
                epoch=loop.machine.epoch,
                reasons=(Reason(COORDINATOR, "closed", "the session is closed"),),
            )
        )
