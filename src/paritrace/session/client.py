"""A session from a program: the verbs of the command line as methods, over the same HTTP API (SE-17)."""

import time
import uuid
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import msgspec

from paritrace.errors import Outcome, RequestError
from paritrace.session.api_records import (
    Ask,
    BoundsTable,
    DryRun,
    Event,
    Events,
    Health,
    JournalPage,
    LeaseGiven,
    LeaseRequest,
    Told,
)
from paritrace.session.checkpoint_records import COORDINATOR
from paritrace.session.commands import Body, Fences, Kind, Reason, Reply, Result
from paritrace.session.door import ANSWERS_WITHIN_SECONDS, Door
from paritrace.session.engines.layout import stacks_path
from paritrace.session.engines.stacks import stacks_of
from paritrace.session.journal import Line
from paritrace.session.metrics import KeptMetrics, read_metrics
from paritrace.session.opening import read_session
from paritrace.session.states import RankState
from paritrace.session.status import Status

POLL_SECONDS = 30.0  # of one question for a result; the next one follows at once
SLACK_SECONDS = 5.0  # on top of a caller's own time: the word of a result has to come back (SE-21)


class NotAppliedError(RequestError):
    """A command that was not applied. `reply` has its result and all reasons of all ranks."""

    reply: Reply | None = None


class Options(msgspec.Struct, frozen=True):
    """What every command takes. `id`: asks again for the first result of that id; one is drawn where it is left out."""

    id: str | None = None
    fences: Fences = Fences()
    timeout_seconds: float | None = None

    @property
    def until(self) -> float | None:
        """The moment of the monotonic clock at which it is over, where it begins now."""
        return None if self.timeout_seconds is None else time.monotonic() + self.timeout_seconds


NO_OPTIONS = Options()
_GOES_ON = Reason(COORDINATOR, "under_way", "the run was admitted and goes on; `session status` shows how far it is")


class Client:
    """A resident session, driven from any process of its user. One thread at a time; make one for each thread.

    Methods of commands return once all ranks have done it, with the `Reply`. They raise `NotAppliedError` where the
    result is refused, cancelled, failed or unknown; `RequestError` where the request itself is wrong; `HostError`,
    `coordinator_gone`, where nobody answers.
    """

    def __init__(self, directory: str | Path, *, answers_within_seconds: float = ANSWERS_WITHIN_SECONDS) -> None:
        """`answers_within_seconds`: how long its coordinator has for an answer, beyond the time it is to wait."""
        self._door = Door(Path(directory), answers_within_seconds=answers_within_seconds)

    @property
    def directory(self) -> Path:
        """The session's directory."""
        return self._door.directory

    def run(
        self,
        steps: int,
        *,
        schedule: Mapping[str, Any] | None = None,
        autosave: bool = True,
        wait: bool = False,
        options: Options = NO_OPTIONS,
    ) -> Reply:
        """Take so many steps from where all ranks are; returns once they are admitted, with `wait` once they ended.

        Args:
            steps: How many; a session has no natural end.
            schedule: Values over the steps of this run only (SE-24).
            autosave: Save when the run pauses (SE-37).
            wait: Wait until the run has ended, was stopped, or has failed; raises `NotAppliedError` in the last case.
            options: Id, fences, patience.
        """
        body: Body = {"steps": steps, "schedule": dict(schedule or {}), "autosave": autosave}
        return self.command(Kind.RUN, body, options, wait=wait)

    def stop(self, *, options: Options = NO_OPTIONS) -> Reply:
        """Park all ranks at one agreed step, their device queues drained (SE-6)."""
        return self.command(Kind.STOP, {}, options)

    def configure(
        self,
        values: Mapping[str, Any] | None = None,
        *,
        inputs: Mapping[str, Any] | None = None,
        options: Options = NO_OPTIONS,
    ) -> Reply:
        """Change values, inputs, or both, on all ranks or on none (SE-9, SE-33)."""
        body: Body = {"values": dict(values or {})}
        return self.command(Kind.CONFIGURE, body if inputs is None else body | {"inputs": dict(inputs)}, options)

    def save(self, name: str | None = None, *, options: Options = NO_OPTIONS) -> Reply:
        """Save a checkpoint of all ranks, its manifest last (SE-8)."""
        return self.command(Kind.SAVE, {} if name is None else {"name": name}, options)

    def load(
        self,
        checkpoint: str,
        *,
        rebuild: bool = False,
        tolerate_unknown: bool = False,
        options: Options = NO_OPTIONS,
    ) -> Reply:
        """Load a checkpoint by its name, or `latest`, on every rank or on none.

        `rebuild`: out of an error, by new ranks (SE-20).
        """
        body: Body = {"checkpoint": checkpoint, "rebuild": rebuild, "tolerate_unknown": tolerate_unknown}
        return self.command(Kind.LOAD, body, options)

    def inputs(self, reference: Mapping[str, Any], *, options: Options = NO_OPTIONS) -> Reply:
        """Prepare inputs while steps go on, then install and publish them at an agreed step (SE-9)."""
        return self.command(Kind.INPUTS, {"reference": dict(reference)}, options)

    def preview(
        self, preview: Mapping[str, Any] | None = None, *, rank: int | None = None, options: Options = NO_OPTIONS
    ) -> Reply:
        """Have every rank that offers one render a preview, or `rank` alone, with options of the workload's (SE-32)."""
        of_rank = {} if rank is None else {"rank": rank}
        return self.command(Kind.PREVIEW, {"options": dict(preview or {}), **of_rank}, options)

    def capture(
        self,
        steps: int,
        *,
        level: str | Sequence[str] = "module",
        select: Sequence[str] = (),
        name: str | None = None,
        options: Options = NO_OPTIONS,
    ) -> Reply:
        """Capture the next steps at a level or levels into a run directory of the session (SE-15).

        `select`: only these, patterns as for `paritrace run --select`.
        """
        body: Body = {"steps": steps, "level": level if isinstance(level, str) else list(level), "select": list(select)}
        return self.command(Kind.CAPTURE, body if name is None else body | {"name": name}, options)

    def rebuild(
        self,
        values: Mapping[str, Any] | None = None,
        *,
        inputs: Mapping[str, Any] | None = None,
        options: Options = NO_OPTIONS,
    ) -> Reply:
        """Make device state anew; out of an error, with new ranks in a new generation (SE-20, SE-33)."""
        body: Body = {} if values is None else {"values": dict(values)}
        return self.command(Kind.REBUILD, body if inputs is None else body | {"inputs": dict(inputs)}, options)

    def close(self, *, now: bool = False, options: Options = NO_OPTIONS) -> Reply:
        """Close the workload on every rank, then the session.

        `now`: do not wait for what is under way, nor for a rank that is stuck: all are told to end, and killed
        `term_grace` later (2 s); a report says what each one was at.
        """
        return self.command(Kind.CLOSE, {"now": True} if now else {}, options)

    def command(self, kind: Kind, body: Body, options: Options = NO_OPTIONS, *, wait: bool = False) -> Reply:
        """Ask a command and wait for its result; with `wait` until no steps are pending, where it is a run.

        Raises:
            NotAppliedError: Refused or Failed, as its result says.
        """
        until = options.until
        reply = self.ask(kind, body, options)
        if wait:
            reply = self.waited(reply, until=until)
        if reply.result is not Result.APPLIED:
            raise not_applied(reply)
        return reply

    def ask(self, kind: Kind, body: Body, options: Options = NO_OPTIONS) -> Reply:
        """Ask a command and return what became of it, whatever that is."""
        patience, until = options.timeout_seconds, options.until
        command_id = options.id or str(uuid.uuid4())
        asked = Ask(body, command_id, options.fences, patience)
        told = self.begin(kind, asked, wait_seconds=_wait(until))
        while told.reply is None and (until is None or time.monotonic() < until):
            told = self.reconcile(command_id, wait_seconds=_wait(until))
        return told.reply or self._withdrawn(command_id, kind)

    def begin(self, kind: Kind, asked: Ask, *, wait_seconds: float = 0.0) -> Told:
        """Ask a command and return how it stands after so long; `reconcile` asks again by its id."""
        return self._door.ask("POST", f"commands/{kind.value}", Told, body=asked, wait_seconds=wait_seconds)

    def try_out(self, kind: Kind, body: Body, options: Options = NO_OPTIONS) -> DryRun:
        """Return what would become of a command now; nothing is asked."""
        asked = Ask(body, options.id, options.fences)
        return self._door.ask("POST", f"commands/{kind.value}", DryRun, query={"dry_run": "true"}, body=asked)

    def reconcile(self, command_id: str, *, wait_seconds: float = 0.0) -> Told:
        """Return how a command stands, by its id: also after a timeout, and from another process (SE-7)."""
        return self._door.ask("GET", f"commands/{command_id}", Told, wait_seconds=wait_seconds)

    def status(self) -> Status:
        """Return the session at this moment."""
        return self._door.ask("GET", "status", Status)

    def stacks(self) -> dict[int, str]:
        """Return the stacks of all threads of the ranks that run on this machine, also of one stuck in native code.

        A rank that gave none within a second (it is stopped, has ended, or runs elsewhere) is left out (SE-12).
        """
        found = self.status()
        return stacks_of(
            {
                view.rank: (view.pid, stacks_path(str(self.directory), found.generation, view.rank))
                for view in found.ranks
                if view.pid is not None
            }
        )

    def events(self, cursor: int = 0, *, wait_seconds: float = 0.0) -> Events:
        """Return what happened after a cursor; `lost`: how many events had left the ring before they were asked for."""
        return self._door.ask("GET", "events", Events, query={"cursor": cursor}, wait_seconds=wait_seconds)

    def follow(self, cursor: int | None = None) -> Iterator[Event]:
        """Yield events as they happen, from now on or after a cursor. A slow reader loses its own (SE-27)."""
        at = self.cursor() if cursor is None else cursor
        while True:
            found = self.events(at, wait_seconds=POLL_SECONDS)
            yield from found.events
            at = found.cursor

    def cursor(self) -> int:
        """Return the cursor of now."""
        return self.events(2**53).cursor

    def config(self, revision: int | None = None) -> dict[str, Any]:
        """Return the configuration of a revision, each value with its source, default and limits (SE-26)."""
        return self._door.ask("GET", "config" if revision is None else f"config/{revision}", dict[str, Any])

    def bounds(self) -> BoundsTable:
        """Return every wait of the session, with its reason (SE-21)."""
        return self._door.ask("GET", "bounds", BoundsTable)

    def journal(self, *, after: int = 0) -> Iterator[Line]:
        """Yield the lines of the journal after a number."""
        more = True
        while more:
            page = self._door.ask("GET", "journal", JournalPage, query={"after": after})
            yield from page.lines
            more = page.more
            after = page.lines[-1].sequence if page.lines else after

    def metrics(self) -> KeptMetrics:
        """Return the samples of metrics that the directory keeps, also when nobody runs it any more."""
        read_session(self.directory)
        return read_metrics(self.directory)

    @contextmanager
    def writing(self, holder: str, *, seconds: float = 60.0) -> Generator[None]:
        """Hold the one writer lease while the block runs, `seconds` at most: nobody else may command (SE-17)."""
        given = self._door.ask("POST", "lease", LeaseGiven, body=LeaseRequest(holder, seconds))
        self._door.lease = given.lease
        try:
            yield
        finally:
            self._door.lease = None
            self._door.ask("POST", "lease/return", Health, body={"lease": given.lease})

    def wait_until_idle(self, *, until: float | None = None) -> Status:
        """Wait until no steps are pending: the run has ended, was stopped or has failed. Return the status then, or at
        the moment `until` of the monotonic clock."""
        at = self.cursor()
        status = self.status()
        while is_under_way(status) and (until is None or time.monotonic() < until):
            at = self.events(at, wait_seconds=1.0).cursor
            status = self.status()
        return status

    def show_lease(self, lease: str | None) -> None:
        """Show a lease with every command from now on."""
        self._door.lease = lease

    def disconnect(self) -> None:
        """Let go of the connection; the session goes on, and the next question makes another one."""
        self._door.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.disconnect()

    def waited(self, reply: Reply, *, until: float | None = None) -> Reply:
        """Wait until the run that was admitted is over; return its reply, `failed` where it has failed, and `unknown`
        where it goes on at the moment `until`."""
        if reply.result is not Result.APPLIED:
            return reply
        status = self.wait_until_idle(until=until)
        if is_under_way(status):
            return msgspec.structs.replace(reply, result=Result.UNKNOWN, step=status.step, reasons=(_GOES_ON,))
        if status.state is RankState.ERROR:
            return msgspec.structs.replace(reply, result=Result.FAILED, reasons=status.error)
        return msgspec.structs.replace(reply, step=status.step)

    def _withdrawn(self, command_id: str, kind: Kind) -> Reply:
        told = self._door.ask("POST", "withdrawals", Told, body={"id": command_id}, wait_seconds=SLACK_SECONDS)
        if told.reply is not None:
            return told.reply
        status = self.status()
        return Reply(command_id, kind, Result.UNKNOWN, status.generation, status.epoch)


def not_applied(reply: Reply, /) -> NotAppliedError:
    """Return the error that says what became of a command instead."""
    unchanged = reply.result in {Result.REFUSED, Result.CANCELLED}
    error = NotAppliedError(
        f"{reply.kind.value} was {'not answered in time' if reply.result is Result.UNKNOWN else reply.result.value}",
        code="not_applied",
        fix="mend what the reasons name and ask again under a new id; `paritrace session status` shows where it stands",
        outcome=Outcome.REFUSED if unchanged else Outcome.FAILED,
        details=tuple(f"rank {one.rank}: {one.words} [{one.code}]" for one in reply.reasons),
    )
    error.reply = reply
    return error


def is_being_reported(status: Status, /) -> bool:
    """Say whether a failure has happened whose cause is not judged yet: for a second or two."""
    return status.state is RankState.ERROR and status.root_cause is None


def is_under_way(status: Status, /) -> bool:
    """Say whether steps are pending, ranks load, or a failure is being judged: what a caller waits for is not over."""
    return status.target is not None or status.state is RankState.LOADING or is_being_reported(status)


def _wait(until: float | None) -> float:
    return POLL_SECONDS if until is None else min(POLL_SECONDS, max(0.001, until - time.monotonic()))
