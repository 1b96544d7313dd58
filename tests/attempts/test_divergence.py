"""Where two trajectories part: the first step, how, what came before it and whether they recover (AT-23)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paritrace.attempts.divergence import PartingKind, Recovery, Standing, diverge
from paritrace.attempts.trace_steps import program_of
from tests.attempts.stories import trace

BASE = ("ls . = a b", "ls . = a b", "read a = 1", "write b = ok", "test all = pass")


def test_at_23_the_same_path_does_not_part() -> None:
    found = diverge(trace(*BASE), trace(*BASE))
    assert (found.parting, found.recovery, found.before) == (None, Recovery.NOT_PARTED, 5)


def test_at_23_arguments_only_is_told_from_another_path() -> None:
    found = diverge(trace(*BASE), trace(*BASE[:3], "write c = ok", BASE[4]))
    assert found.parting is not None
    assert (found.parting.kind, found.parting.a, found.parting.b) == (PartingKind.ARGUMENTS, 3, 3)
    assert found.parting.arguments == ("x",)
    assert found.recovery is Recovery.TO_THE_END


def test_at_23_another_tool_is_another_path_and_repeated_calls_before_it_are_common() -> None:
    found = diverge(trace(*BASE), trace(BASE[0], BASE[1], "grep a = 1", "grep b = 2"))
    assert found.parting is not None
    assert (found.parting.kind, found.before, found.recovery) == (PartingKind.PATH, 2, Recovery.NEVER)


def test_at_23_a_step_more_on_one_side_is_recovered_from() -> None:
    found = diverge(trace(*BASE), trace(*BASE[:2], *BASE[3:]))
    assert found.parting is not None
    assert (found.parting.kind, found.parting.a) == (PartingKind.PATH, 2)
    assert found.standing_a[2] is Standing.ONLY
    assert Standing.ONLY not in found.standing_b
    assert found.recovery is Recovery.TO_THE_END


def test_at_23_independent_calls_in_another_order_are_not_counted() -> None:
    """The same arguments gave the same results in either order."""
    found = diverge(trace(*BASE), trace(BASE[0], BASE[1], BASE[3], BASE[2], BASE[4]))
    assert found.parting is None
    assert found.count(0, Standing.REORDERED) == 2


def test_at_23_calls_of_one_turn_are_independent_even_without_results() -> None:
    found = diverge(trace("read a; read b", "test c"), trace("read b; read a", "test c"))
    assert found.parting is None
    assert found.count(0, Standing.REORDERED) == 2


def test_at_23_an_order_that_mattered_is_counted() -> None:
    found = diverge(trace("read a = old", "write a = ok"), trace("write a = ok", "read a = new"))
    assert found.parting is not None
    assert found.parting.kind is PartingKind.ORDER


def test_at_23_an_order_is_counted_where_nothing_shows_that_it_did_not_matter() -> None:
    found = diverge(trace("read a", "write a"), trace("write a", "read a"))
    assert found.parting is not None
    assert found.parting.kind is PartingKind.ORDER


def test_at_23_one_end_is_a_parting_of_its_own() -> None:
    found = diverge(trace(*BASE), trace(*BASE[:2]))
    assert found.parting is not None
    assert (found.parting.kind, found.parting.a, found.parting.b) == (PartingKind.ENDED, 2, None)


def test_at_23_another_result_of_the_same_call_is_told_and_is_no_parting() -> None:
    found = diverge(trace(*BASE), trace(BASE[0], "ls . = other", BASE[2], BASE[3], "deploy x = y"))
    assert found.other_results == ((1, 1),)
    assert found.parting is not None
    assert found.parting.a == 4


def test_at_23_together_for_a_while() -> None:
    left = trace("a 1 = x", "b 1 = x", "c 1 = x", "d 1 = x", "e 1 = x")
    right = trace("a 1 = x", "B 2 = x", "c 1 = x", "d 1 = x", "E 2 = x")
    found = diverge(left, right)
    assert found.recovery is Recovery.FOR_A_WHILE
    assert [(one.a, one.b) for one in found.rejoins] == [((2, 4), (2, 4))]


def test_at_23_what_is_said_beside_calls_is_not_a_step() -> None:
    found = diverge(trace("say hello"), trace("say goodbye"))
    assert found.parting is not None
    assert found.parting.kind is PartingKind.ARGUMENTS  # an answer by itself is one


def test_at_23_of_a_shell_the_program_is_a_part_of_the_tool() -> None:
    found = diverge(trace("bash ls -l = x"), trace("bash rm -rf / = x"))
    assert found.parting is not None
    assert found.parting.kind is PartingKind.PATH


@pytest.mark.parametrize(
    ("tool", "arguments", "program"),
    [
        ("bash", {"command": "ls -la"}, "ls"),
        ("bash", {"command": "cd /testbed && python -m pytest"}, "python"),
        ("shell", {"command": ["bash", "-lc", "FOO=1 make all"]}, "make"),
        ("execute_bash", {"command": "sudo /usr/bin/git status"}, "git"),
        ("bash", "cat file", "cat"),
        ("bash", {"command": ""}, ""),
        ("bash", {"restart": True}, ""),
        ("read_file", {"command": "ls"}, ""),
    ],
)
def test_at_23_the_program_of_a_command_line(tool: str, arguments: object, program: str) -> None:
    assert program_of(tool, arguments) == program


STEPS = st.lists(st.sampled_from(["a 1 = x", "a 2 = x", "b 1 = x", "b 1 = y", "c", "say z", "a 1; b 2"]), max_size=12)


@given(STEPS, STEPS)
def test_at_23_swapping_the_sides_mirrors_the_result(left: list[str], right: list[str]) -> None:
    ours, theirs = trace(*left), trace(*right)
    found, mirrored = diverge(ours, theirs), diverge(theirs, ours)
    assert found.standing_a == mirrored.standing_b
    assert found.before == mirrored.before
    assert found.recovery is mirrored.recovery
    assert (found.parting is None) == (mirrored.parting is None)
    if found.parting is not None and mirrored.parting is not None:
        assert (found.parting.kind, found.parting.a, found.parting.b) == (
            mirrored.parting.kind,
            mirrored.parting.b,
            mirrored.parting.a,
        )


@given(STEPS, STEPS)
def test_at_23_every_step_stands_in_one_stretch_and_no_common_beginning_is_lost(
    left: list[str], right: list[str]
) -> None:
    ours, theirs = trace(*left), trace(*right)
    found = diverge(ours, theirs)
    assert sorted(i for one in found.stretches for i in range(*one.a)) == list(range(len(ours.steps)))
    assert sorted(j for one in found.stretches for j in range(*one.b)) == list(range(len(theirs.steps)))
    pairs = zip(ours.steps, theirs.steps, strict=False)
    same = [a.arguments_sha256 == b.arguments_sha256 and a.name == b.name for a, b in pairs]
    common = next((k for k, alike in enumerate(same) if not alike), len(same))
    assert found.before >= common or found.count(0, Standing.ORDER) > 0


@given(STEPS)
def test_at_23_a_trajectory_never_parts_from_itself(steps: list[str]) -> None:
    found = diverge(trace(*steps), trace(*steps))
    assert found.parting is None
    assert set(found.standing_a) <= {Standing.SAME}
