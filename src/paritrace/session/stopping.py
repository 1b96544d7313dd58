"""Ends a generation that has failed: what is known of every rank first, then its ends, then the whole report (SE-12).

Bounds: `SETTLE_SECONDS` and a second for stacks until there is a report; after that the grace of SIGTERM, and the wait
for what was killed. Whoever does not end by then is reported as not reaped.
"""

import signal
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from paritrace.clock import SYSTEM, Clock, rfc3339
from paritrace.errors import HostError
from paritrace.files.local import Files
from paritrace.session.commands import Reason
from paritrace.session.directory import failure_name
from paritrace.session.engines.seam import Engine, FromEngine
from paritrace.session.failure import FailureReport, LastHeard, RankFailure, Role, exit_words, judged
from paritrace.session.messages import Ended, Halt, encoded, from_rank
from paritrace.session.states import RankState

SETTLE_SECONDS = 0.25  # deaths at once arrive some milliseconds apart, and survivors' own errors some tens after them
TAIL_BYTES = 16 * 1024  # of a rank's log: a traceback of a hundred frames


class Failing(Struct, frozen=True):
    """What is to be reported. `last` by rank; `errors` said so far by ranks."""

    session_id: str
    generation: int
    directory: str
    world_size: int
    code: str
    why: str
    last: dict[int, LastHeard]
    grace_seconds: float  # the bound `term_grace`
    reap_seconds: float  # the bound `reap`


class Stopped(Struct, frozen=True):
    """What became of it. `brought`: what the engine brought meanwhile, for whoever reads it otherwise."""

    report: FailureReport
    name: str | None  # of the report within the session's directory; None where it could not be written
    trouble: str = ""  # why not
    brought: tuple[FromEngine, ...] = field(default_factory=tuple[FromEngine, ...])


def stop_failed(
    engine: Engine,
    failing: Failing,
    *,
    files: Files,
    reported: Callable[[FailureReport], None],
    clock: Clock = SYSTEM,
) -> Stopped:
    """Report the failure at once (`reported` is called then), end the ranks where they are ours, complete the report.

    Never raises for a report that cannot be written: the ranks are ended all the same.
    """
    at = rfc3339(clock.wall_ns())
    brought = _brought(engine, SETTLE_SECONDS, clock, enough=lambda: not _living(engine, failing))
    stacks = engine.dump_stacks(_living(engine, failing))
    first = _report(engine, failing, at, brought, stacks)
    _written(files, failing, first)
    reported(first)
    brought += _ended(engine, failing, clock)
    last = _completed(engine, failing, first)
    name, trouble = _written(files, failing, last)
    return Stopped(last, name, trouble, tuple(brought))


def _living(engine: Engine, failing: Failing) -> list[int]:
    return [rank for rank in range(failing.world_size) if engine.exit_evidence(rank).wait is None]


def _brought(engine: Engine, seconds: float, clock: Clock, *, enough: Callable[[], bool]) -> list[FromEngine]:
    """Take what comes for a while, or until it is enough."""
    found: list[FromEngine] = []
    until = clock.monotonic_ns() + round(seconds * 1e9)
    while not enough() and (left := until - clock.monotonic_ns()) > 0:
        found += engine.receive(left / 1e9)
    return found


def _ended(engine: Engine, failing: Failing, clock: Clock) -> list[FromEngine]:
    """Tell the ranks to leave; end them where they are ours: SIGTERM, the grace, SIGKILL, the wait for that."""
    halt = encoded(Halt(failing.generation, failing.why))
    for rank in _living(engine, failing):
        engine.send(rank, halt)
    if not engine.stops_ranks:
        return []
    found: list[FromEngine] = []
    for number, seconds in ((signal.SIGTERM, failing.grace_seconds), (signal.SIGKILL, failing.reap_seconds)):
        for rank in _living(engine, failing):
            (engine.terminate if number == signal.SIGTERM else engine.kill)(rank)
        found += _brought(engine, seconds, clock, enough=lambda: not _living(engine, failing))
    return found


def _report(
    engine: Engine, failing: Failing, at: str, brought: Iterable[FromEngine], stacks: Mapping[int, str]
) -> FailureReport:
    said = _errors(brought)
    ranks = tuple(
        RankFailure(
            rank=rank,
            role=Role.FAILED,
            words="",
            exit=(evidence := engine.exit_evidence(rank)),
            last=_with_errors(failing.last[rank], said.get(rank, ())),
            log_tail=_tail(failing, evidence.log),
            stacks=stacks.get(rank),
        )
        for rank in range(failing.world_size)
    )
    cause, words, judged_ranks = judged(ranks)
    return FailureReport(
        session_id=failing.session_id,
        generation=failing.generation,
        code=failing.code,
        why=failing.why,
        root_cause=cause,
        root_cause_words=words,
        at=at,
        ranks=judged_ranks,
    )


def _with_errors(last: LastHeard, said: tuple[Reason, ...]) -> LastHeard:
    return replace(last, errors=last.errors or said)


def _errors(brought: Iterable[FromEngine]) -> dict[int, tuple[Reason, ...]]:
    """The errors that ranks said meanwhile."""
    found: dict[int, tuple[Reason, ...]] = {}
    for one in brought:
        if one.data is None:
            continue
        try:
            word = from_rank(one.data)
        except msgspec.MsgspecError:  # whoever reads it otherwise says so
            continue
        if isinstance(word, Ended) and word.state is RankState.ERROR:
            found[one.rank] = word.reasons
    return found


def _completed(engine: Engine, failing: Failing, first: FailureReport) -> FailureReport:
    """The same judgement, with the ends that came after it."""
    ranks = tuple(replace(one, exit=engine.exit_evidence(one.rank)) for one in first.ranks)
    return replace(
        first,
        ranks=tuple(replace(one, words=exit_words(one.exit), log_tail=_tail(failing, one.exit.log)) for one in ranks),
    )


def _tail(failing: Failing, log: str | None) -> str:
    """The end of a rank's log; empty where the engine keeps none here, or it cannot be read."""
    if log is None:
        return ""
    try:
        with Path(failing.directory, log).open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - TAIL_BYTES))
            return file.read(TAIL_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def _written(files: Files, failing: Failing, report: FailureReport) -> tuple[str | None, str]:
    """Write the report; a full disk does not keep ranks from being ended."""
    name = failure_name(failing.generation)
    try:
        files.replace(
            Path(failing.directory, name), msgspec.json.format(msgspec.json.encode(report)) + b"\n", mode=0o600
        )
    except HostError as error:
        return None, error.message
    return name, ""
