"""The rule of stop causes over every legal state, against a table spelled by hand (SC-0 to SC-5)."""

import itertools
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from paritrace.evidence.gaps import Gap, ResourceGap, gap_of
from paritrace.process.cgroup_evidence import CgroupScope, CgroupVersion, Exclusivity, OomCount
from paritrace.process.stop_facts import (
    ExchangeEnd,
    Exited,
    OomRise,
    Signalled,
    Stop,
    StopCause,
    StopFacts,
    StopGap,
    StopReason,
    Timer,
    Victim,
    VictimSource,
    Wait,
)
from paritrace.runs.stop import exit_words, stop_of

ENDED_NS = 5_000_000_000
SCOPE = CgroupScope(
    version=CgroupVersion.V2, path="/s", directory="/sys/fs/cgroup/s", top="/sys/fs/cgroup", device=1, inode=2
)
NOT_KEPT: Gap[ResourceGap] = Gap(ResourceGap.NO_COUNTER)


def count(oom_kill: int, read_ns: int, *, inode: int = 2) -> OomCount:
    return OomCount(
        scope=replace(SCOPE, inode=inode),
        source="memory.events",
        oom_kill=oom_kill,
        oom_kill_local=NOT_KEPT,
        oom_group_kill=NOT_KEPT,
        oom=NOT_KEPT,
        systemd_oomd_kills=NOT_KEPT,
        read_monotonic_ns=read_ns,
    )


RISE = OomRise(before=count(0, 1), after=count(1, 9_000_000_000))
VICTIM = Victim(pid=7, source=VictimSource.REAPED, detail="", seen_ns=ENDED_NS)
TIMER = Timer(limit_seconds=4.0, set_ns=1_000_000_000, fired_ns=5_000_000_000)
GONE: Gap[StopGap] = Gap(StopGap.NOT_REAPED)

E, C = ExchangeEnd, StopCause
# exchange -> the wait statuses that can come with it, and the cause without an out-of-memory kill of ours
LEGAL: dict[ExchangeEnd, tuple[tuple[Wait | Gap[StopGap], ...], StopCause | None]] = {
    E.SUCCEEDED: ((Exited(0), GONE), None),
    E.FAILED_RESULT: ((GONE,), C.AGENT_FAILED),
    E.CANCELLED: ((Exited(0), Exited(130), Signalled(15), GONE), C.UNCLASSIFIED),
    E.TIMED_OUT: ((Exited(0), Exited(124), Exited(137), Signalled(15), Signalled(9), GONE), C.AGENT_EXHAUSTED_BUDGET),
    E.HOST_EXITED: ((Exited(0), Exited(1), Exited(137), Signalled(9), Signalled(11)), C.UNCLASSIFIED),
    E.COMMAND_FAILED: ((Exited(1), Exited(124), Exited(137), Exited(255)), C.COMMAND_FAILED),
    E.RAISED: ((GONE, Gap(StopGap.NOT_STARTED)), C.RUNNER_FAILED),
}
# what became of the counter -> may it be the cause at all
OOM = {
    "none": ((), False),
    "equal": ((replace(RISE, after=count(0, 9_000_000_000)),), False),
    "before the end": ((replace(RISE, after=count(1, ENDED_NS - 1)),), False),
    "after the end": ((replace(RISE, before=count(0, ENDED_NS + 1)),), False),
    "fell": ((replace(RISE, before=count(3, 1)),), False),
    "another cgroup": ((replace(RISE, after=count(1, 9_000_000_000, inode=3)),), False),
    "rose": ((RISE,), True),
}
ERRORS = {E.TIMED_OUT, E.HOST_EXITED, E.COMMAND_FAILED, E.RAISED}


class State(NamedTuple):
    exchange: ExchangeEnd
    wait: Wait | Gap[StopGap]
    oom: str
    exclusivity: Exclusivity
    victim: bool
    killed: bool


def states() -> list[State]:
    return [
        State(exchange, wait, oom, exclusivity, victim, killed)
        for exchange, (waits, _) in LEGAL.items()
        for wait, oom, exclusivity, victim in itertools.product(waits, OOM, Exclusivity, (False, True))
        for killed in ((False, True) if exchange is E.TIMED_OUT else (False,))
    ]


def facts_of(state: State) -> StopFacts:
    return StopFacts(
        exchange=state.exchange,
        ended_ns=ENDED_NS,
        wait=None if isinstance(state.wait, Gap) else state.wait,
        wait_gap=gap_of(state.wait),
        timer=TIMER if state.exchange is E.TIMED_OUT else None,
        rises=OOM[state.oom][0],
        exclusivity=state.exclusivity,
        victims=(VICTIM,) if state.victim else (),
        force_stopped=state.killed,
    )


def test_every_legal_state_has_the_cause_of_the_table() -> None:
    assert len(states()) > 1_000
    for state in states():
        stop = stop_of(facts_of(state))
        ours = state.exclusivity in (Exclusivity.VERIFIED, Exclusivity.DECLARED)
        rose = OOM[state.oom][1]
        if state.exchange is E.SUCCEEDED:
            assert stop is None, state
            continue
        assert stop is not None
        if rose and ours and state.victim and state.exchange in ERRORS:
            assert (stop.cause, stop.reason, stop.oom_in_scope) == (C.SANDBOX_FAILED, StopReason.OUT_OF_MEMORY, None)
            continue
        assert stop.cause is LEGAL[state.exchange][1], state
        assert stop.reason is (StopReason.TIMEOUT if state.exchange is E.TIMED_OUT else None), state
        assert (stop.oom_in_scope is None) is not rose, state


def test_a_memory_kill_is_never_read_from_an_exit_status() -> None:
    for wait in (Exited(137), Exited(124), Signalled(9)):
        for exchange in (E.COMMAND_FAILED, E.HOST_EXITED):
            stop = stop_of(StopFacts(exchange=exchange, ended_ns=1, wait=wait))
            assert stop is not None
            assert stop.reason is None
            assert stop.cause in (C.UNCLASSIFIED, C.COMMAND_FAILED)


def test_a_rise_outranks_our_own_timer_and_keeps_its_figures() -> None:
    facts = facts_of(State(E.TIMED_OUT, Signalled(9), "rose", Exclusivity.VERIFIED, victim=True, killed=True))
    assert stop_of(facts) == Stop(
        cause=C.SANDBOX_FAILED,
        reason=StopReason.OUT_OF_MEMORY,
        exit=Signalled(9),
        timeout_seconds=4.0,
        used_seconds=4.0,
        force_stopped=True,
    )


def test_a_timeout_has_limit_use_and_whether_it_was_forced() -> None:
    for killed in (False, True):
        stop = stop_of(
            facts_of(State(E.TIMED_OUT, Exited(3), "none", Exclusivity.UNKNOWN, victim=False, killed=killed))
        )
        assert stop is not None
        assert (stop.timeout_seconds, stop.used_seconds, stop.force_stopped, stop.exit) == (4.0, 4.0, killed, Exited(3))


@pytest.mark.parametrize(
    ("exclusivity", "victim", "told"),
    [
        (Exclusivity.VERIFIED, False, "victim_unknown"),
        (Exclusivity.UNKNOWN, True, "scope_not_exclusive (unknown)"),
        (Exclusivity.CONTRADICTED, True, "scope_not_exclusive (contradicted)"),
    ],
)
def test_a_rise_that_is_no_cause_says_why(exclusivity: Exclusivity, victim: bool, told: str) -> None:
    stop = stop_of(facts_of(State(E.HOST_EXITED, Signalled(9), "rose", exclusivity, victim=victim, killed=False)))
    assert stop is not None
    assert stop.oom_in_scope == told


def test_a_returned_failure_stays_the_agents_with_the_rise_beside_it() -> None:
    stop = stop_of(facts_of(State(E.FAILED_RESULT, GONE, "rose", Exclusivity.VERIFIED, victim=True, killed=False)))
    assert stop == Stop(cause=C.AGENT_FAILED, oom_in_scope="returned_by_the_adapter")


def test_exit_codes_and_signals_are_two_things_in_words() -> None:
    assert exit_words(Exited(137)) == "exit code 137"
    assert exit_words(Signalled(9)) == "signal 9 (SIGKILL)"
    assert exit_words(Signalled(250)) == "signal 250 (unnamed)"
