"""The two machines, explored: whatever is late, lost, copied, refused, broken, stuck or dead, whenever (SE-19).

In every world that can be reached no rank steps under another epoch than its run was admitted under, whatever is voted
for or acted upon is at one step on all ranks, and in every end each command has its one result and nobody waits.
"""

import random
import sys

import pytest

from paritrace.session.commands import Body, Command, Fences, Kind
from tests.session.exploring import Explored, explore, walk
from tests.session.worlds import PAID_BY, Script, Wrong

RUN = Command("run", Kind.RUN, {"steps": 2})
STOP = Command("stop", Kind.STOP)
CLOSE = Command("close", Kind.CLOSE)
CLOSE_NOW = Command("close", Kind.CLOSE, {"now": True})
FAULTS = sorted(set(PAID_BY.values()))
LARGE = {"copy", "timeout"}  # they may come at any time, so that many more worlds are reached
LIVE_KINDS = (Kind.CONFIGURE, Kind.SAVE, Kind.INPUTS, Kind.PREVIEW, Kind.CAPTURE)
WITH_INPUTS = Command("live", Kind.CONFIGURE, {"inputs": {}})
KINDS = (*LIVE_KINDS, Kind.RUN, Kind.STOP, Kind.LOAD, Kind.REBUILD)
PAIRS = [
    ("loss", "death"),
    ("loss", "timeout"),
    ("copy", "timeout"),
    ("refusal", "loss"),
    ("stick", "timeout"),
    ("freeze", "death"),
]


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest) -> "Telling":
    return Telling(capsys, request.node.name)


class Telling:
    """Prints how much was visited, whatever else is captured."""

    def __init__(self, capsys: pytest.CaptureFixture[str], name: str) -> None:
        self._capsys, self._name = capsys, name

    def __call__(self, explored: Explored) -> Explored:
        with self._capsys.disabled():
            sys.stdout.write(f"\n{self._name}: {explored.states} states, {explored.ends} ends\n")
        return explored


def results_of(explored: Explored, command_id: str) -> set[str]:
    return {result for settled, result in explored.results if settled == command_id}


@pytest.mark.parametrize(
    "fault", [pytest.param(fault, marks=[pytest.mark.slow] if fault in LARGE else []) for fault in FAULTS]
)
def test_se19_one_rank_with_any_one_fault_at_any_point(fault: str, told: Telling) -> None:
    explored = told(explore(Script((RUN, STOP, CLOSE), **{fault: 1}), world_size=1))  # type: ignore[arg-type]
    assert explored.ends > 1
    assert results_of(explored, "close") == {"applied"}
    _copies_are_harmless(fault, explored)


def _copies_are_harmless(fault: str, explored: Explored) -> None:
    """What comes twice, and late, changes nothing of what comes of any command."""
    if fault == "copy":
        assert {result for _, result in explored.results} <= {"applied", "cancelled"}


def test_se19_without_faults_nothing_fails_or_is_left_to_a_timer(told: Telling) -> None:
    explored = told(explore(Script((RUN, STOP)), world_size=2))
    assert explored.results == {("run", "applied"), ("stop", "applied")}


def test_se19_a_gate_that_lets_one_step_too_many_pass_is_found() -> None:
    with pytest.raises(Wrong, match=r"steps|parked|step"):
        explore(Script((RUN, STOP), late_rank=1), world_size=2)


def test_se6_the_rest_of_a_run_ends_as_the_coordinator_believes(told: Telling) -> None:
    explored = told(explore(Script((RUN, Command("live", Kind.CONFIGURE)), loss=1), world_size=1))
    assert ("live", "applied") in explored.results


@pytest.mark.parametrize("fault", ["stick", "freeze", "death"])
def test_se21_a_close_at_once_ends_whatever_is_under_way_whatever_is_wrong(fault: str, told: Telling) -> None:
    explored = told(explore(Script((RUN, STOP, CLOSE_NOW), **{fault: 1}), world_size=1))  # type: ignore[arg-type]
    assert results_of(explored, "close") == {"applied"}
    assert results_of(explored, "stop") >= {"applied", "cancelled"}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_se19_two_ranks_with_any_one_fault_at_any_point(fault: str, told: Telling) -> None:
    explored = told(explore(Script((RUN, STOP), **{fault: 1}), world_size=2))  # type: ignore[arg-type]
    assert ("stop", "applied") in explored.results
    _copies_are_harmless(fault, explored)


@pytest.mark.slow
@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault not in LARGE])  # too many: walked
def test_se19_three_ranks_with_any_one_fault_at_any_point(fault: str, told: Telling) -> None:
    run = Command("run", Kind.RUN, {"steps": 1})
    explored = told(explore(Script((run, STOP), **{fault: 1}), world_size=3))  # type: ignore[arg-type]
    assert ("stop", "applied") in explored.results


@pytest.mark.slow
def test_se19_three_ranks_stop_within_a_run_whatever_comes_first(told: Telling) -> None:
    explored = told(explore(Script((RUN, STOP)), world_size=3))
    assert explored.results == {("run", "applied"), ("stop", "applied")}


def test_se9_inputs_that_come_with_values_are_applied_or_refused_whatever_comes_first(told: Telling) -> None:
    explored = told(explore(Script((RUN, WITH_INPUTS), refusal=1), world_size=1))
    assert results_of(explored, "live") == {"applied", "refused"}
    assert results_of(explored, "run") == {"applied", "refused"}


LIVE = {
    **{
        f"{kind.value}-{fault}": (Command("live", kind, {"steps": 1} if kind is Kind.CAPTURE else {}), fault)
        for kind in LIVE_KINDS
        for fault in ("loss", "refusal", "death")
    },
    **{f"configure-with-inputs-{fault}": (WITH_INPUTS, fault) for fault in ("refusal", "death")},  # `inputs` has more
}


def test_se6_no_rank_stays_parked_for_inputs_that_are_prepared_behind_another_command(told: Telling) -> None:
    explored = told(explore(Script((RUN, Command("first", Kind.CONFIGURE), WITH_INPUTS)), world_size=1))
    assert results_of(explored, "live") == {"applied"}


@pytest.mark.slow
@pytest.mark.parametrize(("live", "fault"), list(LIVE.values()), ids=list(LIVE))
def test_se6_every_live_kind_within_a_run_is_done_on_both_ranks_or_on_none(
    live: Command, fault: str, told: Telling
) -> None:
    explored = told(explore(Script((RUN, live), **{fault: 1}), world_size=2))  # type: ignore[arg-type]
    assert ("live", "applied") in explored.results
    if fault == "refusal":
        assert ("live", "refused") in explored.results


@pytest.mark.slow
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_se19_one_rank_with_two_faults_at_any_points(pair: tuple[str, str], told: Telling) -> None:
    script = Script((RUN, STOP, CLOSE), **dict.fromkeys(pair, 1))  # type: ignore[arg-type]
    assert results_of(told(explore(script, world_size=1)), "close") == {"applied"}


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["loss", "death", "timeout", "freeze", "stick"])
def test_se16_loops_of_others_step_on_to_their_end_whatever_becomes_of_control(fault: str, told: Telling) -> None:
    script = Script((STOP,), loop_steps=2, stops_ranks=False, **{fault: 1})  # type: ignore[arg-type]
    assert {("stop", "applied"), ("stop", "cancelled")} <= told(explore(script, world_size=2)).results


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["loss", "death"])
def test_f18_a_close_ends_control_of_loops_whoever_has_dialled_in_by_then(fault: str, told: Telling) -> None:
    script = Script((CLOSE,), loop_steps=2, stops_ranks=False, **{fault: 1})  # type: ignore[arg-type]
    assert told(explore(script, world_size=2)).results == {("close", "applied")}


@pytest.mark.slow
@pytest.mark.parametrize(
    "recovery",
    [Command("again", Kind.REBUILD), Command("again", Kind.LOAD, {"checkpoint": "here", "rebuild": True})],
)
def test_se20_after_an_error_a_new_generation_works(recovery: Command, told: Telling) -> None:
    explored = told(explore(Script((RUN, recovery, CLOSE), death=1), world_size=2))
    assert {"applied", "cancelled", "refused", "failed"} == results_of(explored, "again")


@pytest.mark.slow
def test_se29_a_withdrawn_command_is_cancelled_or_has_its_own_result(told: Telling) -> None:
    explored = told(explore(Script((RUN, STOP), withdraw=("stop",), loss=1), world_size=1))
    assert results_of(explored, "stop") == {"applied", "cancelled", "failed", "refused"}


@pytest.mark.slow
def test_se4_a_step_that_is_not_the_expected_one_cancels_and_the_run_goes_on(told: Telling) -> None:
    fenced = Command("fenced", Kind.STOP, fences=Fences(step=1))
    explored = told(explore(Script((RUN, fenced)), world_size=2))
    assert explored.results == {("run", "applied"), ("fenced", "applied"), ("fenced", "cancelled")}


def _random_script(choice: random.Random) -> Script:
    kinds = [choice.choice(KINDS) for _ in range(4)]
    commands = tuple(
        Command(f"{kind.value}-{number}", kind, _random_body(kind, choice)) for number, kind in enumerate(kinds)
    )
    faults = {fault: choice.choice((0, 0, 1)) for fault in FAULTS}
    withdraw = (choice.choice(commands).id,)
    close = choice.choice((CLOSE, CLOSE, CLOSE_NOW))
    return Script((*commands, close), withdraw=withdraw, **faults)  # type: ignore[arg-type]


def _random_body(kind: Kind, choice: random.Random) -> Body:
    match kind:
        case Kind.RUN | Kind.CAPTURE:
            return {"steps": choice.randint(1, 4 if kind is Kind.RUN else 2)}
        case Kind.CONFIGURE | Kind.REBUILD:
            return choice.choice(({}, {"inputs": {}}))
        case _:
            return {}


def _walks(seeds: range) -> Explored:
    states, ends, results = 0, 0, set[tuple[str, str]]()
    for seed in seeds:
        choice = random.Random(seed)
        walked = walk(_random_script(choice), world_size=choice.randint(1, 3), seed=seed)
        states, ends = states + walked.states, ends + walked.ends
        results |= {(command_id.partition("-")[0], result) for command_id, result in walked.results}
    return Explored(states, ends, frozenset(results))


def test_se19_random_commands_with_random_faults_on_up_to_three_ranks(told: Telling) -> None:
    assert ("close", "applied") in told(_walks(range(60))).results


@pytest.mark.slow
def test_se19_random_commands_meet_every_result_of_every_kind(told: Telling) -> None:
    explored = told(_walks(range(1000, 3000)))
    for kind in KINDS:
        assert {"applied", "refused", "cancelled", "failed"} == results_of(explored, kind.value), kind
