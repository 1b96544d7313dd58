"""Fold laws over any partition into boxes: rows, columns, grids, uneven and empty parts, any dtype (CA-8, N-08)."""

from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paritrace.errors import Outcome, RequestError
from paritrace.evidence import kernels
from paritrace.evidence.boxes import (
    Box,
    Tiling,
    coordinates,
    in_whole,
    is_word_aligned,
    owned,
    runs_of,
    tiling,
    whole,
)
from paritrace.evidence.calls import Counts, Moments
from paritrace.evidence.dtypes import DTYPES
from paritrace.evidence.fingerprints import elements, fingerprint, indexed, sample_indices, xor_regions
from paritrace.evidence.folds import (
    FoldedXor,
    FoldGap,
    fold_counts,
    fold_elements,
    fold_moments,
    fold_xors,
    partition_gap,
    xor_at_width,
)
from paritrace.evidence.gaps import CaptureGap, Gap
from paritrace.evidence.summaries import summarise
from tests.evidence import reference

Values = npt.NDArray[Any]
EVERY_DTYPE = sorted(DTYPES)


@st.composite
def wholes(draw: st.DrawFn) -> tuple[str, Values]:
    """A dtype and a tensor of one to three dimensions with random bits, as voids of its item size."""
    name = draw(st.sampled_from(EVERY_DTYPE))
    shape = tuple(draw(st.lists(st.integers(1, 7), min_size=1, max_size=3)))
    size = prod(shape) * DTYPES[name].itemsize
    data = np.random.default_rng(draw(st.integers(0, 2**32))).bytes(size)
    return name, np.frombuffer(data, dtype=f"V{DTYPES[name].itemsize}").reshape(shape)


@st.composite
def grids(draw: st.DrawFn, shape: tuple[int, ...]) -> list[Box]:
    """A partition by cuts along every dimension: uneven, and some parts may be empty."""
    boxes = [whole(shape)]
    for dim, size in enumerate(shape):
        cuts = sorted(draw(st.lists(st.integers(0, size), max_size=2)))
        edges = list(zip([0, *cuts], [*cuts, size], strict=True))
        boxes = [
            Box(_with(box.offset, dim, low), _with(box.shape, dim, high - low)) for box in boxes for low, high in edges
        ]
    return draw(st.permutations(boxes))


def _with(values: tuple[int, ...], dim: int, value: int) -> tuple[int, ...]:
    return (*values[:dim], value, *values[dim + 1 :])


def part_of(values: Values, box: Box) -> bytes:
    place = tuple(slice(low, low + size) for low, size in zip(box.offset, box.shape, strict=True))
    return np.ascontiguousarray(values[place]).tobytes()


@given(wholes(), st.data())
def test_ca8_the_element_sum_and_the_indexed_sum_fold_over_any_partition(
    drawn: tuple[str, Values], data: st.DataObject
) -> None:
    name, values = drawn
    size = DTYPES[name].itemsize
    boxes = data.draw(grids(values.shape))
    assert partition_gap(values.shape, boxes) is None
    parts = [part_of(values, box) for box in boxes]
    assert fold_elements([elements(part, size) for part in parts]) == elements(values.tobytes(), size)
    sums = [indexed(part, size, runs=runs_of(box, values.shape)) for part, box in zip(parts, boxes, strict=True)]
    assert fold_elements(sums) == indexed(values.tobytes(), size) == reference.indexed_u64(values.tobytes(), size)


@given(wholes(), st.data())
def test_ca8_n08_an_xor_folds_as_words_where_runs_are_words_and_as_elements_anywhere(
    drawn: tuple[str, Values], data: st.DataObject
) -> None:
    name, values = drawn
    size = DTYPES[name].itemsize
    boxes = data.draw(grids(values.shape))
    aligned = all(is_word_aligned(box, values.shape, itemsize=size) for box in boxes)
    folded = fold_xors([xor_regions(part_of(values, box), 1)[0] for box in boxes], itemsize=size, aligned=aligned)
    assert isinstance(folded, FoldedXor)
    assert folded.width == (4 if aligned else min(4, size))
    assert folded.value == xor_at_width(xor_regions(values.tobytes(), 1)[0], folded.width)


@given(wholes(), st.data())
def test_ca8_counts_bounds_and_sums_fold(drawn: tuple[str, Values], data: st.DataObject) -> None:
    name, values = drawn
    boxes = data.draw(grids(values.shape))
    parts = [statistics_of(name, part_of(values, box)) for box in boxes]
    moments, counts = statistics_of(name, values.tobytes())
    assert fold_counts([part[1] for part in parts]) == counts
    folded = fold_moments([part[0] for part in parts])
    assert isinstance(folded, Moments)
    assert (folded.min, folded.max, folded.abs_max) == (moments.min, moments.max, moments.abs_max)
    if moments.sum_squares is not None and folded.sum_squares is not None:
        assert folded.sum_squares == pytest.approx(moments.sum_squares, rel=1e-12)
    if moments.sum is not None and folded.sum is not None:
        largest = (moments.abs_max or 0.0) * values.size
        assert folded.sum == pytest.approx(moments.sum, abs=1e-12 * largest)


def statistics_of(name: str, data: bytes) -> tuple[Moments, Counts]:
    found = summarise(data, dtype=name, num_elements=len(data) // DTYPES[name].itemsize, regions=1)
    assert found.moments is not None
    assert found.counts is not None
    return found.moments, found.counts


@given(wholes(), st.data())
def test_the_runs_of_a_box_are_its_elements_in_their_order(drawn: tuple[str, Values], data: st.DataObject) -> None:
    _, values = drawn
    shape = values.shape
    numbers = np.arange(values.size).reshape(shape)
    for box in data.draw(grids(shape)):
        place = tuple(slice(low, low + size) for low, size in zip(box.offset, box.shape, strict=True))
        held = numbers[place].reshape(-1).tolist()
        runs = runs_of(box, shape)
        assert [start + at for start in runs.starts.tolist() for at in range(runs.length)] == held
        assert list(in_whole(tuple(range(len(held))), box=box, shape=shape)) == held
        assert list(owned(tuple(range(values.size)), box=box, shape=shape)) == sorted(held)
    assert [numbers[coordinates(index, shape)] for index in range(values.size)] == list(range(values.size))


@given(st.lists(st.integers(1, 300), min_size=1, max_size=3), st.data())
def test_ca28_every_sampled_index_belongs_to_exactly_one_part(sizes: list[int], data: st.DataObject) -> None:
    shape = tuple(sizes)
    places = sample_indices(prod(shape))
    boxes = data.draw(grids(shape))
    assert sorted(index for box in boxes for index in owned(places, box=box, shape=shape)) == list(places)


def test_ca8_what_is_no_partition_is_named() -> None:
    upper, lower = Box((0, 0), (2, 3)), Box((2, 0), (2, 3))
    assert tiling((4, 3), (upper, lower)) is Tiling.EXACT
    assert tiling((4, 3), (upper, lower, Box((4, 0), (0, 3)))) is Tiling.EXACT
    assert partition_gap((4, 3), (upper, upper)) == Gap(FoldGap.REPLICAS)
    assert partition_gap((4, 3), (upper,)) == Gap(FoldGap.INCOMPLETE)
    assert partition_gap((3, 3), (upper, lower)) == Gap(FoldGap.OUTSIDE)
    assert partition_gap((12,), (upper, lower)) == Gap(FoldGap.OUTSIDE)
    assert partition_gap((4, 3), ()) == Gap(FoldGap.NO_PARTS)
    assert partition_gap((), (whole(()),)) is None


def test_ca8_a_part_without_a_value_leaves_the_whole_without_one() -> None:
    assert fold_elements([]) == Gap(FoldGap.NO_PARTS)
    assert fold_elements([1, None]) == Gap(FoldGap.PART_UNKNOWN)
    assert fold_elements([1, Gap(CaptureGap.NO_DATA)]) == Gap(FoldGap.PART_UNKNOWN)
    assert fold_moments([]) == fold_counts([]) == fold_xors([], itemsize=4, aligned=True) == Gap(FoldGap.NO_PARTS)
    some = Moments(1.0, 2.0, 3.0, 5.0, 2.0)
    nothing = Moments(None, None, None, None, None)
    assert fold_moments([some, None]) == Gap(FoldGap.PART_UNKNOWN)
    assert fold_counts([Counts(0, 0, 0, 0, 0, 0, 0), None]) == Gap(FoldGap.PART_UNKNOWN)
    assert fold_moments([some, nothing]) == some
    assert fold_moments([nothing, nothing]) == nothing


def test_a_sum_beyond_float64_is_absent_not_infinite() -> None:
    beyond = Moments(1e308, 1e308, None, None, 1e308)
    large = Moments(1e308, 1e308, 1e308, 1e308, 1e308)
    assert fold_moments([large, beyond]) == Moments(1e308, 1e308, None, None, 1e308)
    assert fold_moments([large, large]) == Moments(1e308, 1e308, None, None, 1e308)


class TestIndexedSum:
    """The scheme `indexed-u64`."""

    def test_it_sees_what_the_element_sum_cannot(self) -> None:
        weight = np.random.default_rng(1).standard_normal((8, 6), dtype=np.float32)
        swapped = weight[[1, 0, *range(2, 8)]]
        assert fingerprint(weight, "elements-u64").values == fingerprint(swapped, "elements-u64").values
        assert fingerprint(weight, "indexed-u64").values != fingerprint(swapped, "indexed-u64").values

    def test_the_part_says_where_a_shard_lies(self) -> None:
        weight = np.random.default_rng(2).integers(0, 1 << 16, (3, 257), dtype=np.uint16)
        shards = [(weight[:, :128], (0, 0)), (weight[:, 128:], (0, 128))]
        parts = [fingerprint(shard, "indexed-u64", part=((3, 257), offset)).values[0] for shard, offset in shards]
        assert fold_elements(parts) == fingerprint(weight, "indexed-u64").values[0]
        twice = [fingerprint(shards[0][0], "indexed-u64", part=((3, 257), (0, at))).values[0] for at in (0, 129)]
        assert fold_elements(twice) != fingerprint(weight, "indexed-u64").values[0]

    def test_regions_add_up(self) -> None:
        values = np.arange(101, dtype=np.int64)
        assert (
            fold_elements(fingerprint(values, "indexed-u64", 7).values) == fingerprint(values, "indexed-u64").values[0]
        )
        column = fingerprint(values[:100].reshape(10, 10)[:, :3], "indexed-u64", 4, part=((10, 10), (0, 0)))
        one = fingerprint(values[:100].reshape(10, 10)[:, :3], "indexed-u64", part=((10, 10), (0, 0)))
        assert fold_elements(column.values) == one.values[0]

    @pytest.mark.parametrize("part", [((4, 4), (3, 0)), ((8,), (0,)), ((4, 4), (0, -1)), ((4, 4), (0,))])
    def test_a_part_that_does_not_lie_in_its_whole_is_refused(
        self, part: tuple[tuple[int, ...], tuple[int, ...]]
    ) -> None:
        with pytest.raises(RequestError) as caught:
            fingerprint(np.zeros((2, 4), np.float32), "indexed-u64", part=part)
        assert caught.value.code == "fingerprint_part"
        assert caught.value.outcome is Outcome.REFUSED

    @pytest.mark.skipif(not kernels.available(), reason="numba, the extra `fast`, is not installed")
    @pytest.mark.parametrize("itemsize", [1, 2, 4, 8])
    def test_the_compiled_kernel_gives_the_same_numbers(self, itemsize: int, monkeypatch: pytest.MonkeyPatch) -> None:
        random = np.random.default_rng(itemsize)
        for shape, box in (
            ((50_001,), Box((0,), (50_001,))),
            ((40, 33), Box((3, 5), (30, 17))),
            ((4,), Box((4,), (0,))),
        ):
            part = random.integers(0, 256, box.num_elements * itemsize, dtype=np.uint8)
            runs = runs_of(box, shape)
            expected = indexed(part, itemsize, runs=runs)
            monkeypatch.setattr(kernels, "_ledger", kernels._Ledger(handled=kernels.PAYS_OFF_AFTER))
            assert indexed(part, itemsize, runs=runs) == expected
            assert not kernels._ledger.broken
            monkeypatch.setattr(kernels, "_ledger", kernels._Ledger())
