"""Failures that belong together are told as one story, earliest first, within the screen (CP-25, SU-12)."""

from collections.abc import Sequence

from paritrace.compare.checks_result import Evidence, Invariant, Outcome, Parting
from paritrace.reports.check_screen import check_screen
from paritrace.reports.check_story import in_order, sentence, story_of
from tests.reports.test_check_screen import checked
from tests.reports.test_first_screen import assert_within_bounds

WORDS = {"gradient": "replicas.gradients", "parameter": "replicas.parameters"}


def parted(what: str, name: str, step: int, *, sides: Sequence[Sequence[int]] = ((0,), (1,))) -> Parting:
    moment = "grads" if what == "gradient" else "begin"
    return Parting(what, name, step, moment, tuple(tuple(side) for side in sides), "ddp over group world")


def failed(*partings: Parting, total: int = 0) -> Invariant:
    identity = WORDS.get(partings[0].what, "replicas.optimizer_state")
    evidence = Evidence(facts=("fact",), partings=partings, total=total or len(partings))
    return Invariant(identity, Outcome.FAIL, -1, partings[0].step, "it holds", evidence)


def told(*invariants: Invariant) -> str:
    story = story_of(invariants)
    assert story is not None
    return sentence(story)


def test_cp25_gradient_then_weight_then_optimizer_state_are_one_sentence() -> None:
    found = (
        failed(parted("parameter", "head.weight", 1), parted("parameter", "body.weight", 2)),
        failed(parted("optimizer_state", "head.weight:exp_avg", 1)),
        failed(parted("gradient", "head.weight", 0), parted("gradient", "body.weight", 1)),
    )
    assert told(*found) == (
        "gradient of head.weight differs between ranks 0 and 1 at step 0, before the optimizer; "
        "the parameter itself and its optimizer state from step 1 on; 1 more parameter likewise."
    )


def test_cp25_what_is_not_listed_is_counted() -> None:
    assert told(failed(parted("parameter", "a", 0), total=300)).endswith("; 299 more parameters likewise.")


def test_cp25_sides_of_more_ranks_are_told() -> None:
    two = failed(parted("gradient", "a", 3, sides=((0, 1), (2,))))
    assert "differs between ranks 0,1 and rank 2 at step 3" in told(two)
    three = failed(parted("gradient", "a", 3, sides=((0, 1), (2,), (3,))))
    assert "differs between ranks (ranks 0,1 agree; ranks 2,3 differ) at step 3" in told(three)


def test_su12_a_hostile_name_stays_harmless_and_short_in_the_first_line() -> None:
    evil = "\x1b[2J\u202e" + "x" * 5000 + "\n[check] fine"
    screen = check_screen(checked(failed(parted("gradient", evil, 0))))
    assert_within_bounds(screen)
    assert "\x1b" not in screen
    assert screen.startswith("[check]     Gradient of ")


def test_cp25_of_one_failure_on_two_ranks_the_earlier_step_comes_first() -> None:
    """A NaN that came in on rank 1 is not hidden behind what it made of rank 0 two steps later."""

    def nan(rank: int, step: int) -> Invariant:
        return Invariant("values.finite", Outcome.FAIL, rank, step, "no NaN", Evidence())

    other = Invariant("parameters.change", Outcome.FAIL, 0, 1, "each changes", Evidence())
    assert in_order([nan(0, 16), other, nan(1, 14)]) == [nan(1, 14), nan(0, 16), other]


def test_cp25_what_is_not_finite_comes_before_what_follows_from_it() -> None:
    """Where all values are NaN, batches and parameters repeat themselves: what turned NaN first is told first."""

    def failing(identity: str, step: int) -> Invariant:
        return Invariant(identity, Outcome.FAIL, 0, step, "it holds", Evidence())

    again, constant = failing("batches.not_repeated", 1), failing("parameters.change", 1)
    values, loss = failing("values.finite", 3), failing("loss.finite", 0)
    reduced = failing("replicas.gradients", 4)
    assert in_order([again, constant, values, loss, reduced]) == [reduced, loss, values, again, constant]
    named = failing("values.finite", 0)
    assert in_order([named, loss]) == [named, loss]  # of one step in the order of the check
