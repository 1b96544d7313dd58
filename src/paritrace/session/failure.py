"""The report of a failed generation, and the rule of its cause: pure, of what is known of every rank (SE-12).

The first report to arrive is not the cause by that fact: a rank whose peer was killed says so before its parent does.
So the rule asks what each rank's end can be a consequence of. A signal that nobody of us sent, or an exit without a
word, is nobody's consequence; an error said by a rank, or an abort, may be that of a peer that is gone.
"""

import signal
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from paritrace.process.stop_facts import Exited, Signalled
from paritrace.session.commands import Reason
from paritrace.session.engines.seam import ExitEvidence
from paritrace.session.states import RankState

FORMAT = "paritrace-session-failure"
VERSION = "1.0"
UNDETERMINED = "undetermined"
_LAUNCHERS = frozenset({signal.SIGTERM, signal.SIGKILL})  # what a launcher ends the others with


class Role(StrEnum):
    """What a rank was in a failure."""

    CAUSE = "cause"
    FAILED = "failed"  # by itself, as far as is known; not the cause, or not known to be
    COLLATERAL = "collateral"  # it worked until we, or its launcher, ended it
    LEFT = "left"  # it had ended with status 0
    LIVES = "lives"  # attach: it trains on


class LastHeard(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The last that a rank said of itself, and how long before the failure. `state` None: it never said any."""

    state: RankState | None
    epoch: int
    step: int
    phase: str = ""
    pending: int = 0
    heartbeat_age_seconds: float | None = None
    progress_age_seconds: float | None = None
    findings: tuple[str, ...] = ()
    errors: tuple[Reason, ...] = ()


class RankFailure(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One rank: its end with evidence, its last words. `stacks` None: none came, or it had ended."""

    rank: int
    role: Role
    words: str
    exit: ExitEvidence
    last: LastHeard
    log_tail: str = ""
    stacks: str | None = None


class FailureReport(Struct, frozen=True, forbid_unknown_fields=True):
    """`failures/GENERATION.json`. It holds the workload's own text: only its owner may read it (SE-22)."""

    session_id: str
    generation: int
    code: str
    why: str  # what was noticed first
    root_cause: str  # `rank N`, or `undetermined`
    root_cause_words: str
    at: str  # RFC 3339, when the failure was noticed
    ranks: tuple[RankFailure, ...]
    format: str = FORMAT
    version: str = VERSION


class _Weight(StrEnum):
    """What an end can be a consequence of."""

    HARD = "hard"  # nobody's: a signal that none of us sent, an exit without a word
    SOFT = "soft"  # perhaps of a peer that is gone: an error that was said, an abort
    SILENT = "silent"  # it answers no more, and lives
    NONE = "none"


def judged(ranks: tuple[RankFailure, ...], /) -> tuple[str, str, tuple[RankFailure, ...]]:
    """Return the root cause (`rank N` or `undetermined`), why, and the ranks with their roles.

    The cause is the one rank that failed in a way that can be nobody's consequence; without one, the one rank that said
    an error; without one, the one rank that answers no more. Several of the first that there are: undetermined.
    """
    weights = {one.rank: _weight(one, launcher=_others_failed(one, ranks)) for one in ranks}
    for weight in (_Weight.HARD, _Weight.SOFT, _Weight.SILENT):
        found = [one for one in ranks if weights[one.rank] is weight]
        if len(found) == 1:
            (cause,) = (one.rank for one in found)
            return f"rank {cause}", f"rank {cause} {_what(weight, found[0])}", _with_roles(ranks, weights, cause=cause)
        if found:
            named = ", ".join(str(one.rank) for one in found)
            hard = f"ranks {named} each {_what(weight, found[0])}"
            words = hard if weight is _Weight.HARD else f"more than one: ranks {named}"
            return UNDETERMINED, words, _with_roles(ranks, weights, cause=None)
    return (
        UNDETERMINED,
        "no rank ended, said an error or fell silent by itself",
        _with_roles(ranks, weights, cause=None),
    )


def _what(weight: _Weight, one: RankFailure) -> str:
    """What makes a rank the cause."""
    match weight:
        case _Weight.HARD:
            return "ended by itself, which no other rank's failure explains"
        case _Weight.SOFT if one.last.errors:
            return "said an error, and no other rank failed by itself"
        case _Weight.SOFT if one.exit.wait is not None:
            return "aborted, and no other rank failed by itself"
        case _Weight.SOFT:
            return "is gone, nothing here tells how, and no other rank failed by itself"
        case _Weight.SILENT | _Weight.NONE:
            return "answers no more, and no other rank failed"


def exit_words(evidence: ExitEvidence, /) -> str:
    """Return how a rank ended, with what tells the kernel's out-of-memory killer from another sender where it does."""
    match evidence.wait:
        case None:
            return _without_status(evidence)
        case Exited(code):
            return f"exited with status {code}"
        case Signalled(number):
            return f"ended by {_signal_name(number)}, {_sender(evidence, number)}"


def _without_status(evidence: ExitEvidence) -> str:
    if evidence.words:
        return evidence.words
    if evidence.not_reaped:
        return "not reaped: it was sent SIGKILL and has not ended (a driver may hold it)"
    if not evidence.line_closed:
        return "alive"
    if evidence.launcher_owned:
        return "gone; its exit status is its launcher's"
    return "its line is closed, and it has not ended: it read nothing for a second, or closed a descriptor not its own"


def _sender(evidence: ExitEvidence, number: int) -> str:
    if number in evidence.signals_by_us:
        return "sent by us"
    if number != signal.SIGKILL:
        return "not sent by us"
    match evidence.cgroup_oom_kills:
        case None:
            return "not sent by us; no counter tells whether the kernel did, for lack of memory"
        case 0:
            return "not sent by us, and not by the kernel for lack of memory: its cgroup counted no such kill"
        case kills:
            return f"not sent by us; its cgroup counted {kills} out-of-memory kill(s) meanwhile"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _others_failed(one: RankFailure, ranks: tuple[RankFailure, ...]) -> bool:
    """Whether another rank gave its launcher a reason to end this one."""
    return one.exit.launcher_owned and any(
        other.rank != one.rank and _weight(other, launcher=False) in (_Weight.HARD, _Weight.SOFT)
        for other in ranks
        if not (isinstance(other.exit.wait, Signalled) and other.exit.wait.signal in _LAUNCHERS)
    )


def _weight(one: RankFailure, *, launcher: bool) -> _Weight:
    """`launcher`: whether its launcher had a reason to end it."""
    if one.last.errors:
        return _Weight.SOFT
    match one.exit.wait:
        case Signalled(number) if number in one.exit.signals_by_us:
            return _silent(one)
        case Signalled(number) if launcher and number in _LAUNCHERS:
            return _Weight.NONE
        case Signalled(number):
            return _Weight.SOFT if number == signal.SIGABRT else _Weight.HARD
        case Exited(code):
            return _Weight.HARD if code and not one.exit.signals_by_us else _Weight.NONE
        case None if one.exit.line_closed and not one.exit.signals_by_us:
            return _Weight.SOFT  # it has ended, nobody here knows how
        case None:
            return _silent(one)


def _silent(one: RankFailure) -> _Weight:
    return _Weight.SILENT if any(found.startswith("unresponsive") for found in one.last.findings) else _Weight.NONE


def _with_roles(
    ranks: tuple[RankFailure, ...], weights: dict[int, _Weight], *, cause: int | None
) -> tuple[RankFailure, ...]:
    return tuple(
        replace(
            one, role=Role.CAUSE if one.rank == cause else _role(one, weights[one.rank]), words=exit_words(one.exit)
        )
        for one in ranks
    )


def _role(one: RankFailure, weight: _Weight) -> Role:
    if weight is not _Weight.NONE:
        return Role.FAILED
    match one.exit.wait:
        case Exited(0) if not one.exit.signals_by_us:
            return Role.LEFT
        case None if one.exit.launcher_owned and not one.exit.line_closed:
            return Role.LIVES
        case _:
            return Role.COLLATERAL
