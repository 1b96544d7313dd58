"""What torch's bisector prints becomes an answer, and faults of ours are never one (CP-15, P2)."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from paritrace.automation import compiler_bisection
from paritrace.automation.compiler_bisection import Bisected, part_in_words
from paritrace.automation.compiler_trial import ASKED, BAD, FAILED, PREFIX, TRIED, Trial, Tried, try_once
from paritrace.automation.narrow_records import Ended, Plan, Question
from paritrace.automation.narrow_rules import next_plan, parts_beyond
from paritrace.compare.result import EnvelopeUsed, Mark
from paritrace.files import LOCAL, Files
from paritrace.reports.documents import encoded
from tests.automation.narrowings import ASKED as ASKED_OF_RUNS
from tests.automation.narrowings import parted, place, seen
from tests.automation.requests import request_for
from tests.reports.comparisons import agreeing, ladder

INDUCTOR = (
    "Binary search completed for inductor - lowerings.\n\nBisection complete: BisectionResult(backend='inductor',"
    " subsystem='lowerings', bisect_number=42, debug_info='aten.silu.default')\n"
)
JOINT = (
    "Upper bound of 4 found for inductor.\n\nBisection complete: BisectionResult(backend='inductor',"
    " subsystem='joint_graph_passes', bisect_number=4, debug_info='joint_custom_post_pass')\n"
)
EAGER = "Bisection complete: BisectionResult(backend='eager', subsystem=None, bisect_number=None, debug_info=None)\n"


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        (INDUCTOR, "backend inductor, lowerings 42 (aten.silu.default); 0 trials"),
        (JOINT, "backend inductor, joint_graph_passes 4 (joint_custom_post_pass); 0 trials"),
        (EAGER, "backend eager; 0 trials"),
        ("Bisection complete: no issue found\n", "no backend of the compiler parts from the eager run"),
    ],
)
def test_what_the_bisector_printed(printed: str, expected: str) -> None:
    found: Bisected = compiler_bisection.bisected(printed, (), ())
    assert part_in_words(found) == expected


def test_trials_whose_program_failed_are_told() -> None:
    """A backend under which the program does not run at all is none under which it parts (P2)."""
    trials = (Tried("eager", "", True, 1.0), Tried("aot_eager", "", False, 1.0, status=1))
    found = compiler_bisection.bisected(EAGER.replace("eager", "aot_eager"), trials, ())
    assert part_in_words(found) == "backend aot_eager; 2 trials, of which 1 failed and count as parting"


def test_a_fault_of_ours_is_no_answer_and_ends_every_later_trial(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("raise SystemExit(3)")
    request = replace(request_for(script), python="/no/such/python")
    trial = Trial(request=request, baseline="nowhere", step=0, options=(), deadline_seconds=5.0)
    (tmp_path / ASKED).write_bytes(encoded(trial))
    assert try_once(tmp_path) == BAD
    assert "/no/such/python" in (tmp_path / FAILED).read_text()
    before = sorted(tmp_path.iterdir())
    assert try_once(tmp_path) == BAD
    assert sorted(tmp_path.iterdir()) == before


class Unforeseen(Files):
    """Reading raises what is no error of paritrace's, as a module that is gone from disk does."""

    def read(self, path: Path) -> bytes:
        raise ImportError(f"cannot import {path.name}")


def test_what_nobody_foresaw_is_no_answer_either(tmp_path: Path) -> None:
    """An exception would end the interpreter with status 1, which the bisector reads as "bad"."""
    assert try_once(tmp_path, files=Unforeseen()) == BAD
    told = (tmp_path / FAILED).read_text()
    assert told == "a fault of paritrace itself: ImportError: cannot import trial.json\n"


def test_a_trial_that_was_killed_is_no_answer(tmp_path: Path) -> None:
    (tmp_path / f"{PREFIX}01").mkdir()
    (tmp_path / f"{PREFIX}02").mkdir()
    (tmp_path / f"{PREFIX}01" / TRIED).write_bytes(encoded(Tried("eager", "", True, 1.0)))
    trials, killed = compiler_bisection.trials_of(tmp_path, files=LOCAL)
    assert [trial.backend for trial in trials] == ["eager"]
    assert killed == "trial-02 ended without an answer"


def test_the_compiler_is_bisected_only_where_it_goes_beyond() -> None:
    asked = replace(ASKED_OF_RUNS, compiler=True)
    differing = parted(place(level="module"))
    steps = [seen(Question.REPEAT, agreeing()), seen(Question.STEP, differing)]
    assert next_plan(asked, steps) == Plan(Question.MODULES, 1)
    assert next_plan(asked, [*steps, seen(Question.MODULES, differing)]) == Plan(Question.COMPILER, 1)
    assert next_plan(asked, [*steps, seen(Question.MODULES, agreeing())]) is Ended.NOT_SEEN_AGAIN
    inside = replace(
        differing,
        envelope=EnvelopeUsed(kind="perturbed baselines", num_draws=8, judged=5),
        ladder=ladder(loss=Mark.INSIDE, optimizer=Mark.BEYOND),
    )
    assert next_plan(asked, [*steps, seen(Question.MODULES, inside)]) is Ended.INSIDE_ROUND_OFF
    assert next_plan(asked, [*steps, seen(Question.COMPILER, differing)]) is Ended.FOUND


def test_draws_decide_what_is_beyond_and_bits_where_there_are_none() -> None:
    assert not parts_beyond(agreeing())
    differing = parted(place())
    assert parts_beyond(differing)
    judged = EnvelopeUsed(kind="perturbed baselines", num_draws=8, judged=5)
    quiet = replace(differing, envelope=judged, ladder=ladder())
    assert not parts_beyond(quiet)
    assert parts_beyond(replace(quiet, ladder=ladder(loss=Mark.BEYOND)))
    assert parts_beyond(replace(quiet, envelope=replace(judged, beyond=1)))
