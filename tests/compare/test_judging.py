"""What is said of two replays of one call (CP-26, A-07)."""

import numpy as np
import numpy.typing as npt
import pytest
from msgspec.structs import replace

from paritrace.compare.isolating import apart_by_themselves, holding
from paritrace.compare.judged_result import Functions, JudgedCall, Nearer
from paritrace.compare.judging import Answer, judged_call
from paritrace.evidence.replays import ANSWER_FORMAT, VERSION, Replayed, ReplayedTensor
from paritrace.reports.judge_screen import verdict

Array = npt.NDArray[np.float64]
TRUE = np.linspace(1.0, 2.0, 500)


def answer(recorded: Array, wide: Array | None, dtype: str = "float32", **changes: object) -> Answer:
    tensor = ReplayedTensor("out", dtype, tuple(recorded.shape))
    replayed = Replayed(ANSWER_FORMAT, VERSION, "k", 0, "m", "M", (tensor,))
    arrays = {"recorded/out": recorded} | ({} if wide is None else {"float64/out": wide})
    return Answer(replace(replayed, **changes), arrays)


def rounded(values: Array, units: float = 0.0) -> Array:
    """Float32 values, moved by so many units in the last place, up and down in turn."""
    unit = 2.0**-23
    moves = np.where(np.arange(values.size) % 2, units, -units) * unit
    return (values + moves).astype(np.float32).astype(np.float64)


def call(baseline: Answer, candidate: Answer) -> JudgedCall:
    return judged_call(baseline, candidate, rank=0, step=0, number=0)


def test_cp26_round_off_vanishes_in_float64_so_the_function_is_the_same() -> None:
    found = call(answer(rounded(TRUE), TRUE), answer(rounded(TRUE, 5), TRUE * (1 + 1e-15)))
    assert found.functions is Functions.SAME
    assert found.nearer is Nearer.BASELINE


def test_a07_a_candidate_nearer_to_float64_is_said_to_be_nearer_whichever_is_the_baseline() -> None:
    near, far = answer(rounded(TRUE, 1), TRUE), answer(rounded(TRUE, 9), TRUE)
    assert call(far, near).nearer is Nearer.CANDIDATE
    assert call(near, far).nearer is Nearer.BASELINE


def test_cp26_errors_of_the_same_size_make_neither_nearer() -> None:
    found = call(answer(rounded(TRUE, 3), TRUE), answer(rounded(TRUE, -3), TRUE))
    assert (found.functions, found.nearer) == (Functions.SAME, Nearer.NEITHER)


def test_cp26_within_one_unit_neither_is_nearer() -> None:
    found = call(answer(rounded(TRUE), TRUE), answer(rounded(TRUE, 0.4), TRUE))
    assert found.nearer is Nearer.NEITHER


@pytest.mark.parametrize("change", [1e-3, 1e-5, 1e-7, 3e-9])
def test_cp26_a_difference_that_stays_in_float64_is_another_function_however_small(change: float) -> None:
    found = call(answer(rounded(TRUE), TRUE), answer(rounded(TRUE * (1 + change)), TRUE * (1 + change)))
    assert (found.functions, found.nearer) == (Functions.DIFFERENT, Nearer.NO_REFERENCE)


def test_cp26_an_ill_conditioned_function_stays_one_function_though_float64_itself_rounds() -> None:
    """Errors of float32 are 1e-1 here, so those of float64 are 1e-9 times that and more: both of one cause."""
    noise = np.sin(np.arange(500.0))
    ours, theirs = answer(TRUE + 0.1 * noise, TRUE), answer(TRUE - 0.1 * noise, TRUE * (1 + 5e-8))
    assert call(ours, theirs).functions is Functions.SAME


def test_cp26_what_is_zero_but_for_round_off_is_one_function() -> None:
    """As the gradient of a bias before a norm: 1e-8 in float32, 1e-17 in float64, and nothing agrees but its size."""
    noise, other = np.sin(np.arange(500.0)), np.cos(np.arange(500.0) * 7)
    found = call(answer(1e-8 * noise, 1e-17 * other), answer(1e-8 * other, 1e-17 * noise))
    assert found.functions is Functions.SAME
    zeros = np.zeros(500)
    assert call(answer(zeros, 1e-17 * other), answer(zeros, 1e-17 * noise)).functions is Functions.EQUAL


def test_cp26_without_float64_no_direction_is_claimed() -> None:
    found = call(answer(rounded(TRUE), None, no_reference="because"), answer(rounded(TRUE, 3), TRUE))
    assert (found.functions, found.nearer) == (Functions.UNDETERMINED, Nearer.NO_REFERENCE)
    assert found.tensors[0].why == "because"


def test_cp26_a_reference_narrowed_on_its_way_shows_no_other_function() -> None:
    found = call(answer(rounded(TRUE), TRUE, narrow=("copy_",)), answer(rounded(TRUE, 3), TRUE * (1 + 1e-7)))
    assert found.functions is Functions.UNDETERMINED
    assert "copy_" in found.tensors[0].why


def test_cp26_equal_bits_need_no_reference() -> None:
    found = call(answer(rounded(TRUE), None), answer(rounded(TRUE), None))
    assert found.functions is Functions.EQUAL


def test_cp26_another_shape_is_another_function() -> None:
    found = call(answer(rounded(TRUE), TRUE), answer(rounded(TRUE[:-1]), TRUE[:-1]))
    assert found.functions is Functions.DIFFERENT
    assert "shape" in found.tensors[0].why


def test_cp26_a_nan_on_one_side_is_seen() -> None:
    bad = rounded(TRUE)
    bad[3] = np.nan
    found = call(answer(rounded(TRUE), TRUE), answer(bad, TRUE))
    assert found.nearer is Nearer.BASELINE
    assert found.tensors[0].candidate is not None
    assert found.tensors[0].candidate.non_finite_apart == 1


def test_cp26_a_refusal_is_told_with_its_side_and_nothing_else_is_said() -> None:
    found = call(answer(rounded(TRUE), TRUE), answer(rounded(TRUE), TRUE, refused="no such module"))
    assert found.refused == "candidate: no such module"
    assert found.functions is Functions.UNDETERMINED
    assert not found.tensors


def test_cp26_outputs_of_other_names_are_not_compared_with_each_other() -> None:
    other = answer(rounded(TRUE), TRUE, tensors=())
    found = call(answer(rounded(TRUE), TRUE), other)
    assert found.refused == "no output in common: out and no tensor"
    assert "no output in common" in verdict(found)


def test_cp26_bfloat16_against_float32_is_measured_in_the_units_of_each() -> None:
    narrow = (TRUE * 128).round() / 128
    found = call(answer(rounded(TRUE), TRUE), answer(narrow, TRUE, dtype="bfloat16"))
    assert found.functions is Functions.SAME
    (out,) = found.tensors
    assert out.candidate is not None
    assert out.candidate.largest is not None
    assert out.candidate.largest <= 0.5


def placed(module: str, functions: Functions, step: int = 0) -> JudgedCall:
    return JudgedCall(module, module, "C", "C", 0, step, 0, functions, Nearer.NEITHER)


def test_cp26_containers_of_what_differs_are_not_listed_beside_it() -> None:
    different, equal = Functions.DIFFERENT, Functions.EQUAL
    calls = [
        placed("a.norm", different),
        placed("a.linear", equal),
        placed("a", different),
        placed("ab", different),
        placed("b.inner", equal),
        placed("b", different),
        placed("", different),
        placed("a", different, step=1),
    ]
    assert [calls[place].module_baseline for place in apart_by_themselves(calls)] == ["a.norm", "ab", "b", "a"]
    assert [calls[place].module_baseline for place in holding(calls)] == ["a", ""]
