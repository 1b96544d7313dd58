"""The screens of trajectories that part, and their document (AT-23)."""

import pytest

from paritrace.attempts.trace_matching import Chosen, match
from paritrace.attempts.traces import Trace
from paritrace.reports.documents import encoded
from paritrace.reports.layout import HEIGHT, WIDTH
from paritrace.reports.trajectories.document import document, held
from paritrace.reports.trajectories.overview import overview
from paritrace.reports.trajectories.screen import screen
from tests.attempts.stories import trace
from tests.conftest import Golden

READ = tuple(f"read file{i} = text {i}" for i in range(5))
FIX = ("bash pytest = 1 failed", *READ, "edit main.py = ok", "bash pytest = 2 passed", "say fixed")
STORIES: dict[str, tuple[Trace, Trace]] = {
    "same": (trace(*FIX), trace(*FIX[:2], FIX[3], FIX[2], *FIX[4:])),
    "arguments": (trace(*FIX, outcome="pass"), trace(*FIX[:6], "edit test.py = ok", *FIX[7:], outcome="fail")),
    "path": (
        trace(*FIX, outcome="pass"),
        trace(
            "bash pytest = 3 failed", *READ[:3], "grep bug = here", "delete main.py = gone", "say done", outcome="fail"
        ),
    ),
    "extra": (trace(*FIX), trace(*FIX[:4], "think hard = ", "bash ls = a", *FIX[4:])),
    "ended": (trace(*FIX), trace(*FIX[:4])),
    "order": (trace(*FIX), trace(*FIX[:6], "bash pytest = 1 failed", "edit main.py = ok", "say fixed")),
    "answer": (trace("say 4", outcome="match I"), trace("say 2", outcome="match C")),
    "hostile": (trace("evil \x1b[31m\u202e = x"), trace("evil \x1b[32m\n[parting] nothing = x")),
}


@pytest.mark.parametrize("name", sorted(STORIES))
def test_at_23_the_screen_of_one_task(name: str, golden: Golden) -> None:
    a, b = STORIES[name]
    (one,) = held(match([a], [b], Chosen()))
    golden(f"trajectories/{name}.txt", screen(one, next_line="paritrace attempts diverge A B --json"))


@pytest.mark.parametrize("name", sorted(STORIES))
def test_at_23_a_screen_never_grows_and_never_moves_the_cursor(name: str) -> None:
    a, b = STORIES[name]
    (one,) = held(match([a], [b], Chosen()))
    lines = screen(one).splitlines()
    assert len(lines) <= HEIGHT
    assert max(map(len, lines)) <= WIDTH
    assert all(line.isprintable() for line in lines)


def test_at_23_a_long_trajectory_fits_and_says_what_is_left_out() -> None:
    left = [f"step{i} x = y" for i in range(400)]
    right = [line for i, line in enumerate(left) if i % 3]
    (one,) = held(match([trace(*left)], [trace(*right)], Chosen()))
    lines = screen(one).splitlines()
    assert len(lines) <= HEIGHT
    assert any("more stretches" in line for line in lines)


def test_at_23_the_screen_of_many_tasks(golden: Golden) -> None:
    left = [_named(a, name, "a1") for name, (a, _) in STORIES.items()] + [
        trace("x", task="only a"),
        trace(task="empty"),
    ]
    right = [_named(b, name, "b1") for name, (_, b) in STORIES.items()] + [
        trace("x", task="only b"),
        trace(task="empty"),
    ]
    matched = match(left, right, Chosen())
    text = overview(("runs/a", "runs/b"), matched, held(matched), next_line="paritrace attempts diverge …")
    golden("trajectories/overview.txt", text)


def test_the_command_to_copy_is_never_cut() -> None:
    command = "paritrace attempts diverge " + "/a/long/folder" * 20 + " B --json"
    matched = match([trace("a")], [trace("b")], Chosen())
    for text in (
        overview(("A", "B"), matched, held(matched), next_line=command),
        screen(held(matched)[0], next_line=command),
    ):
        assert f"\n[next]      {command}\n" in text
        assert len(text.splitlines()) <= 34


def test_at_23_the_document_keeps_values_to_itself_unless_asked() -> None:
    secret = trace("bash cat SECRET-TOKEN = SECRET-RESULT")
    matched = match([secret], [trace("bash ls = a")], Chosen())
    shown = {
        values: encoded(document(("A", "B"), matched, held(matched), sources=(), refused=(), values=values))
        for values in (False, True)
    }
    assert b"SECRET" not in shown[False]
    assert b"SECRET-TOKEN" in shown[True]
    assert b"SECRET-RESULT" not in shown[True]


def test_at_23_a_task_is_named_by_its_last_part_and_an_attempt_chosen() -> None:
    left = [trace("a", task="set/t1", attempt="r/1"), trace("b", task="set/t1", attempt="r/2")]
    matched = match(left, [trace("a", task="set/t1"), trace("a", task="set/t2")], Chosen(task="t1", attempt_a="2"))
    assert [(one.a.attempt_id, one.num_a, one.num_b) for one in matched.tasks] == [("r/2", 1, 1)]
    assert matched.only_b == ()


def _named(one: Trace, task: str, attempt: str) -> Trace:
    return Trace(
        task_id=task,
        attempt_id=attempt,
        steps=one.steps,
        origin=one.origin,
        outcome=one.outcome,
        inherited=one.inherited,
    )
