"""Activations of unlike layouts by moments and samples: placed, pending, replicated, declared parts (CA-28, CP-12)."""

from math import prod
from types import MappingProxyType

import numpy as np
import pytest

from paritrace.compare.folds_errors import errors
from paritrace.compare.folds_facts import Held
from paritrace.compare.folds_layout import Axis, Layout, Part, locate
from paritrace.compare.folds_orders import order_of
from paritrace.compare.folds_tensors import SlotPart, WholeTensor, alone, folded
from paritrace.evidence.boxes import Box, owned, whole
from paritrace.evidence.calls import Detail, Kind
from paritrace.evidence.distributed import Placement
from paritrace.evidence.fingerprints import sample_indices
from paritrace.evidence.summaries import summarise
from paritrace.testing.tables import Array

ACTIVATION = np.random.default_rng(3).standard_normal((30, 40)).astype(np.float32)
NO_AXES: MappingProxyType[str, Axis] = MappingProxyType({})


def part(
    array: Array,
    rank: int,
    *,
    placements: tuple[str, ...] = (),
    shape: tuple[int, ...] = (),
    offset: tuple[int, ...] = (),
) -> SlotPart:
    """A rank's part with its summary, sampled as captures sample it."""
    data = np.ascontiguousarray(array)
    kind = Kind(0, str(data.dtype), data.shape, (), "strided", "cpu", False, data.size, data.nbytes)
    placement = Placement(0, 0, placements, shape, offset) if placements else None
    samples = None
    if placement is not None and data.shape != shape:
        inside = owned(sample_indices(prod(shape)), box=Box(offset, data.shape), shape=shape)
        places = [np.unravel_index(index, shape) for index in inside]
        samples = tuple(
            int(np.ravel_multi_index([p - o for p, o in zip(place, offset, strict=True)], data.shape))
            for place in places
        )
    found = summarise(data.tobytes(), dtype=str(data.dtype), num_elements=data.size, regions=4, samples=samples)
    fields = {name: getattr(found, name) for name in found.__struct_fields__}
    return SlotPart(Part(rank, kind, placement, (rank,), NO_AXES), Detail(call=0, side="o", slot=0, **fields))


def united(parts: list[SlotPart]) -> WholeTensor:
    layout = locate([one.part for one in parts], dims=None, num_absent=0, pending=True)
    assert isinstance(layout, Layout)
    return folded(layout, parts)


def halves(array: Array, dim: int) -> list[SlotPart]:
    cut = array.shape[dim] // 3
    first, second = np.split(array, [cut], axis=dim)
    offset = (cut, 0) if dim == 0 else (0, cut)
    told = ((first, (0, 0)), (second, offset))
    return [
        part(one, rank, placements=(f"S({dim})",), shape=array.shape, offset=at) for rank, (one, at) in enumerate(told)
    ]


@pytest.mark.parametrize("dim", [0, 1])
def test_ca28_samples_of_placed_parts_are_those_of_the_whole(dim: int) -> None:
    together, single = united(halves(ACTIVATION, dim)), alone(part(ACTIVATION, 0))
    assert together.samples == single.samples
    found = errors(single, together)
    assert (found.samples, found.num_samples) == (0.0, 64)
    assert found.norm is not None
    assert found.norm < 1e-14


@pytest.mark.parametrize("dim", [0, 1])
def test_cp12_the_size_of_an_error_is_estimated(dim: int) -> None:
    noise = np.random.default_rng(4).standard_normal(ACTIVATION.shape).astype(np.float32)
    found = errors(alone(part(ACTIVATION, 0)), united(halves(ACTIVATION + np.float32(1e-3) * noise, dim)))
    assert found.samples == pytest.approx(1e-3, rel=0.4)
    assert found.largest == found.samples
    assert found.ratio is None


def test_cp12_partial_adds() -> None:
    """The samples and the sum of terms add; their squares and bounds say nothing of the whole."""
    term = np.random.default_rng(5).standard_normal(ACTIVATION.shape).astype(np.float32)
    terms = [
        part(one, rank, placements=("P(sum)",), shape=ACTIVATION.shape, offset=(0, 0))
        for rank, one in enumerate((term, ACTIVATION - term))
    ]
    found = errors(alone(part(ACTIVATION, 0)), united(terms))
    assert found.samples is not None
    assert found.samples < 1e-6
    assert found.mean is not None
    assert found.mean < 1e-6
    assert found.norm is None
    assert found.bounds is None


def test_cp12_the_mean_of_terms_is_their_average() -> None:
    terms = [
        part(one, rank, placements=("P(avg)",), shape=ACTIVATION.shape, offset=(0, 0))
        for rank, one in enumerate((ACTIVATION * 2, ACTIVATION * 0))
    ]
    assert errors(alone(part(ACTIVATION, 0)), united(terms)).samples == 0.0


def test_cp12_terms_of_a_maximum_do_not_add() -> None:
    terms = [part(ACTIVATION, rank, placements=("P(max)",), shape=ACTIVATION.shape, offset=(0, 0)) for rank in (0, 1)]
    found = errors(alone(part(ACTIVATION, 0)), united(terms))
    assert (found.samples, found.mean, found.num_samples) == (None, None, 0)


def test_cp12_replicas_that_are_not_alike_are_said() -> None:
    other = ACTIVATION.copy()
    other[0, 0] += 1
    parts = [
        part(one, rank, placements=("R",), shape=ACTIVATION.shape, offset=(0, 0))
        for rank, one in enumerate((ACTIVATION, other))
    ]
    assert united(parts).facts == ("ranks 0, 1 should hold the same part",)


def test_cp7_non_finite_counts_come_before_any_size() -> None:
    broken = ACTIVATION.copy()
    broken[3, 3], broken[4, 4] = np.nan, np.inf
    found = errors(alone(part(ACTIVATION, 0)), alone(part(broken, 0)))
    assert found.facts == ("NaN: 0 against 1", "+Inf: 0 against 1")


def test_cp12_a_constant_factor_shows_on_the_samples() -> None:
    assert errors(alone(part(ACTIVATION, 0)), united(halves(ACTIVATION * 2, 0))).ratio == pytest.approx(2.0)


def test_cp12_dtypes_may_differ() -> None:
    narrow = ACTIVATION.astype(np.float16)
    found = errors(alone(part(ACTIVATION, 0)), alone(part(narrow, 0)))
    assert found.samples is not None
    assert 0 < found.samples < 1e-3


class TestOrder:
    """Another order of the same elements, seen where a module read the parameter."""

    PIECES = (Held(Box((0, 0), (10, 40)), (0,), 1), Held(Box((10, 0), (20, 40)), (1,), 2))

    def test_rows_exchanged_in_one_shard_name_its_rank(self) -> None:
        swapped = ACTIVATION[[*range(10), *range(29, 9, -1)]]
        found = order_of(alone(part(ACTIVATION, 0)), alone(part(swapped, 0)), held={"candidate": self.PIECES})
        assert found.other
        assert found.facts[1].startswith("candidate: all of them on rank 1")

    def test_a_change_that_no_sample_shows_is_still_seen_in_a_whole(self) -> None:
        changed = ACTIVATION.copy()
        place = next(index for index in range(changed.size) if index not in sample_indices(changed.size))
        changed.reshape(-1)[place] += 1
        found = order_of(alone(part(ACTIVATION, 0)), alone(part(changed, 0)), held={"candidate": self.PIECES})
        assert found.other
        assert found.facts == ("0 of 64 samples at logical indices differ",)

    def test_nothing_is_said_where_nothing_was_read(self) -> None:
        single = alone(part(ACTIVATION, 0))
        assert not order_of(None, single, held={}).other
        assert not order_of(single, alone(part(ACTIVATION[:5], 0)), held={}).other

    def test_the_same_nan_is_no_other_order(self) -> None:
        broken = ACTIVATION.copy()
        broken.reshape(-1)[list(sample_indices(broken.size))] = np.nan
        single = alone(part(broken, 0))
        assert not order_of(single, single, held={}).other


def test_the_whole_of_one_piece_keeps_its_bits() -> None:
    parts = [part(ACTIVATION, 0, placements=("R",), shape=ACTIVATION.shape, offset=(0, 0))]
    layout = locate([parts[0].part], dims=None, num_absent=0)
    assert isinstance(layout, Layout)
    assert layout.pieces[0].box == whole(ACTIVATION.shape)
    assert folded(layout, parts).bits == parts[0].detail.bits
    assert united(halves(ACTIVATION, 0)).bits == ""
