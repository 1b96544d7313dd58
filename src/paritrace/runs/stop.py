"""The rule of stop causes: from a set of facts to one word, first match wins, never a guess (SC-0 to SC-5)."""

import signal

from paritrace.evidence.gaps import Gap
from paritrace.process.cgroup_evidence import Exclusivity
from paritrace.process.cgroup_rules import oom_rise
from paritrace.process.stop_facts import (
    ExchangeEnd,
    Exited,
    OomRise,
    Signalled,
    Stop,
    StopCause,
    StopFacts,
    StopReason,
    Timer,
    Wait,
)

_EXCHANGE_FAILED = frozenset(
    {ExchangeEnd.TIMED_OUT, ExchangeEnd.HOST_EXITED, ExchangeEnd.COMMAND_FAILED, ExchangeEnd.RAISED}
)
_OURS_ALONE = frozenset({Exclusivity.VERIFIED, Exclusivity.DECLARED})


def stop_of(facts: StopFacts) -> Stop | None:
    """Return why it stopped, None where it succeeded.

    A returned failure stays the agent's, with a rise shown beside it (SC-5); a rise without a known victim, in a scope
    that is not ours alone, or whose reads do not bracket the end, causes nothing (SC-0).
    """
    if facts.exchange is ExchangeEnd.SUCCEEDED:
        return None
    rise = bracketing_rise(facts)
    why_not = None if rise is None else _why_not_the_cause(facts)
    if rise is not None and why_not is None and facts.exchange in _EXCHANGE_FAILED:
        return _sandbox_failed(facts)
    beside = why_not or ("returned_by_the_adapter" if rise is not None else None)
    match facts.exchange:
        case ExchangeEnd.TIMED_OUT:
            return _exhausted(facts, beside)
        case ExchangeEnd.HOST_EXITED | ExchangeEnd.CANCELLED:
            return Stop(cause=StopCause.UNCLASSIFIED, exit=facts.wait, oom_in_scope=beside)
        case ExchangeEnd.COMMAND_FAILED:
            return Stop(cause=StopCause.COMMAND_FAILED, exit=facts.wait, oom_in_scope=beside)
        case ExchangeEnd.FAILED_RESULT:
            return Stop(cause=StopCause.AGENT_FAILED, oom_in_scope=beside)
        case ExchangeEnd.RAISED:
            return Stop(cause=StopCause.RUNNER_FAILED, oom_in_scope=beside)


def bracketing_rise(facts: StopFacts) -> OomRise | None:
    """Return the first rise whose two reads lie on both sides of the end."""
    return next((one for one in facts.rises if _brackets(one, facts.ended_ns)), None)


def _brackets(rise: OomRise, ended_ns: int) -> bool:
    rose = oom_rise(rise.before, rise.after)
    return (
        not isinstance(rose, Gap)
        and rose > 0
        and (rise.before.read_monotonic_ns <= ended_ns <= rise.after.read_monotonic_ns)
    )


def used_seconds(timer: Timer, ended_ns: int) -> float:
    """Return how long it ran under a timer, in seconds of the monotonic clock."""
    return (ended_ns - timer.set_ns) / 1e9


def _why_not_the_cause(facts: StopFacts) -> str | None:
    if facts.exclusivity not in _OURS_ALONE:
        return f"scope_not_exclusive ({facts.exclusivity.value})"
    return None if facts.victims else "victim_unknown"


def _sandbox_failed(facts: StopFacts) -> Stop:
    timer = facts.timer if facts.exchange is ExchangeEnd.TIMED_OUT else None
    return Stop(
        cause=StopCause.SANDBOX_FAILED,
        reason=StopReason.OUT_OF_MEMORY,
        exit=facts.wait,
        timeout_seconds=None if timer is None else timer.limit_seconds,
        used_seconds=None if timer is None else used_seconds(timer, facts.ended_ns),
        force_stopped=None if timer is None else facts.force_stopped,
    )


def _exhausted(facts: StopFacts, beside: str | None) -> Stop:
    timer = facts.timer
    return Stop(
        cause=StopCause.AGENT_EXHAUSTED_BUDGET,
        reason=StopReason.TIMEOUT,
        exit=facts.wait,
        timeout_seconds=None if timer is None else timer.limit_seconds,
        used_seconds=None if timer is None else used_seconds(timer, facts.ended_ns),
        force_stopped=facts.force_stopped,
        oom_in_scope=beside,
    )


def exit_words(wait: Wait) -> str:
    """Return a wait status in words: `exit code 137` and `signal 9` are two things (SC-1)."""
    match wait:
        case Exited():
            return f"exit code {wait.code}"
        case Signalled():
            return f"signal {wait.signal} ({signal_name(wait.signal)})"


def signal_name(number: int) -> str:
    """Return a signal's name, `unnamed` for a number that Python has none for."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unnamed"
