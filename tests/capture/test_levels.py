"""Which levels a step is recorded at: asked for, windows, the black box, and what was given up (CA-2, CA-36)."""

from paritrace.capture.levels import DIGEST, WINDOW, LevelPlan
from paritrace.capture.settings import CaptureSettings
from paritrace.evidence.calls import Level

MODULE = frozenset({Level.DIGEST, Level.MODULE})


def test_without_a_black_box_the_levels_are_those_asked_for() -> None:
    plan = LevelPlan(CaptureSettings(levels=WINDOW, steps=(1, 3)), windows=True)
    assert [plan.written(step) for step in range(4)] == [DIGEST, WINDOW, WINDOW, DIGEST]
    assert [plan.observed(step) for step in range(4)] == [DIGEST, WINDOW, WINDOW, DIGEST]
    assert not any(plan.is_kept(step) for step in range(4))


def test_a_black_box_observes_modules_at_every_step_and_keeps_those_that_are_not_written() -> None:
    plan = LevelPlan(CaptureSettings(black_box=True))
    assert [plan.written(step) for step in range(5)] == [MODULE, MODULE, MODULE, DIGEST, DIGEST]
    assert [plan.observed(step) for step in range(5)] == [MODULE] * 5
    assert [plan.is_kept(step) for step in range(5)] == [False, False, False, True, True]


def test_windows_come_with_the_black_box_on_the_ranks_that_have_them() -> None:
    plan = LevelPlan(CaptureSettings(black_box=True, levels=DIGEST), windows=True)
    assert [step for step in range(40) if plan.written(step) == WINDOW] == [0, 1, 2, 4, 8, 16, 32]
    plan.ask_for_window(39)
    assert plan.written(39) == WINDOW
    elsewhere = LevelPlan(CaptureSettings(black_box=True, levels=DIGEST))
    elsewhere.ask_for_window(39)
    assert elsewhere.written(39) == DIGEST


def test_levels_are_given_up_from_the_costly_end_and_for_good() -> None:
    plan = LevelPlan(CaptureSettings(levels=WINDOW, steps=(0, 100)))
    assert plan.lower(0) is Level.MODULE
    assert plan.written(1) == MODULE
    assert plan.lower(1) is Level.DIGEST
    assert plan.written(2) == DIGEST
    assert plan.lower(2) is None


def test_a_black_box_that_costs_too_much_is_given_up() -> None:
    plan = LevelPlan(CaptureSettings(black_box=True), windows=True)
    assert plan.lower(5) is Level.DIGEST
    assert plan.observed(6) == DIGEST
    assert not plan.is_kept(6)
    assert plan.written(8) == DIGEST


def test_call_sites_are_given_up_after_operators_and_before_modules() -> None:
    plan = LevelPlan(CaptureSettings(levels=WINDOW | {Level.CALLSITE}, steps=(0, 100)))
    assert [plan.lower(0) for _ in range(4)] == [Level.CALLSITE, Level.MODULE, Level.DIGEST, None]
    plan = LevelPlan(CaptureSettings(levels=DIGEST | {Level.CALLSITE}, steps=(0, 100)))
    assert [plan.lower(0) for _ in range(2)] == [Level.DIGEST, None]
