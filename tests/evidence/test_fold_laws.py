"""What adds up over the parts of a tensor, for any partition (CA-8)."""

import math
from functools import reduce
from operator import xor
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paritrace.evidence.calls import Counts, Moments
from paritrace.evidence.dtypes import DTYPES
from paritrace.evidence.fingerprints import elements, fold_xor, xor_regions
from paritrace.evidence.summaries import summarise

MASK = (1 << 64) - 1
DTYPE_NAMES = ("float32", "bfloat16", "float16", "float64", "float8_e4m3fn", "int8", "int64", "complex128")
Matrix = npt.NDArray[Any]


@st.composite
def matrices(draw: st.DrawFn, even_columns: bool = False) -> tuple[str, Matrix]:
    """A dtype and a matrix of elements with random bits, as unsigned numbers (complex: as 16-byte voids)."""
    name = draw(st.sampled_from(DTYPE_NAMES))
    rows, columns = draw(st.integers(1, 9)), draw(st.integers(1, 9)) * (4 if even_columns else 1)
    itemsize = DTYPES[name].itemsize
    data = draw(st.binary(min_size=rows * columns * itemsize, max_size=rows * columns * itemsize))
    return name, np.frombuffer(data, dtype=f"V{itemsize}").reshape(rows, columns)


@st.composite
def partitions(draw: st.DrawFn, size: int) -> list[int]:
    """Places to cut `size` things at: any number of parts, uneven, some empty."""
    return sorted(draw(st.lists(st.integers(0, size), max_size=4)))


def parts_of(matrix: Matrix, cuts: list[int], axis: int) -> list[Matrix]:
    return [np.ascontiguousarray(part) for part in np.split(matrix, cuts, axis=axis)]


def element_sum(matrix: Matrix) -> int:
    return elements(matrix.tobytes(), matrix.dtype.itemsize)


@given(matrices(), st.data(), st.sampled_from((0, 1)))
def test_elements_add_up_over_rows_and_columns(drawn: tuple[str, Matrix], data: st.DataObject, axis: int) -> None:
    _, matrix = drawn
    parts = parts_of(matrix, data.draw(partitions(matrix.shape[axis])), axis)
    assert sum(map(element_sum, parts)) & MASK == element_sum(matrix)


@given(st.integers(1, 4), st.integers(1, 3), st.integers(1, 4), st.integers(0, 2**32))
def test_elements_of_fused_qkv_are_those_of_its_parts(heads: int, width: int, inputs: int, seed: int) -> None:
    """Also where q, k and v of each head lie side by side."""
    random = np.random.default_rng(seed)
    query, key, value = random.standard_normal((3, heads * width, inputs), dtype=np.float32)
    total = sum(map(element_sum, (query, key, value))) & MASK
    assert element_sum(np.concatenate((query, key, value))) == total
    by_head = [weight.reshape(heads, width, inputs) for weight in (query, key, value)]
    assert element_sum(np.concatenate(by_head, axis=1)) == total


@given(matrices(), st.data(), st.sampled_from((0, 1)))
def test_counts_and_bounds_fold(drawn: tuple[str, Matrix], data: st.DataObject, axis: int) -> None:
    name, matrix = drawn
    whole_moments, whole_counts = statistics_of(name, matrix)
    parts = [statistics_of(name, part) for part in parts_of(matrix, data.draw(partitions(matrix.shape[axis])), axis)]
    for field in Counts.__struct_fields__:
        assert sum(getattr(counts, field) for _, counts in parts) == getattr(whole_counts, field)
    for field, fold in (("min", min), ("max", max), ("abs_max", max)):
        known = [value for moments, _ in parts if (value := getattr(moments, field)) is not None]
        assert getattr(whole_moments, field) == (fold(known) if known else None)


@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 2**32), st.sampled_from((0, 1)), st.data())
def test_sums_fold_up_to_round_off(rows: int, columns: int, seed: int, axis: int, data: st.DataObject) -> None:
    matrix = np.random.default_rng(seed).standard_normal((rows, columns), dtype=np.float32)
    whole, _ = statistics_of("float32", matrix)
    parts = [
        moments
        for moments, _ in (
            statistics_of("float32", part) for part in parts_of(matrix, data.draw(partitions(matrix.shape[axis])), axis)
        )
        if moments.sum is not None
    ]
    size = float(np.abs(matrix).sum(dtype=np.float64))
    assert math.fsum(part.sum or 0.0 for part in parts) == pytest.approx(whole.sum, abs=1e-13 * size)
    assert math.fsum(part.sum_squares or 0.0 for part in parts) == pytest.approx(whole.sum_squares, rel=1e-13)


@given(matrices(even_columns=True), st.data())
def test_xor_folds_where_every_run_is_word_aligned(drawn: tuple[str, Matrix], data: st.DataObject) -> None:
    """Rows of a multiple of four elements, and columns cut at a multiple of four, are whole words for every dtype."""
    _, matrix = drawn
    for axis, step in ((0, 1), (1, 4)):
        cuts = [step * cut for cut in data.draw(partitions(matrix.shape[axis] // step))]
        parts = [xor_regions(part.tobytes(), 1)[0] for part in parts_of(matrix, cuts, axis)]
        assert reduce(xor, parts) == xor_regions(matrix.tobytes(), 1)[0]


@given(matrices(), st.data(), st.sampled_from((0, 1)))
def test_xor_folded_to_the_width_of_an_element_folds_always(
    drawn: tuple[str, Matrix], data: st.DataObject, axis: int
) -> None:
    _, matrix = drawn
    itemsize = matrix.dtype.itemsize
    parts = parts_of(matrix, data.draw(partitions(matrix.shape[axis])), axis)
    folded = [fold_xor(xor_regions(part.tobytes(), 1)[0], itemsize) for part in parts]
    assert reduce(xor, folded) == fold_xor(xor_regions(matrix.tobytes(), 1)[0], itemsize)


def test_replicas_are_not_a_partition() -> None:
    weight = np.arange(12, dtype=np.float32)
    assert 2 * element_sum(weight) & MASK != element_sum(weight)
    assert xor_regions(np.concatenate((weight, weight)), 1) == (0,)


def statistics_of(name: str, matrix: Matrix) -> tuple[Moments, Counts]:
    data = matrix.tobytes()
    summary = summarise(data, dtype=name, num_elements=len(data) // DTYPES[name].itemsize, regions=1)
    assert summary.moments is not None
    assert summary.counts is not None
    return summary.moments, summary.counts
