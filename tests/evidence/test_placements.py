"""Parts of a whole: which indices they hold, and that their samples unite to the whole's (CA-8, CA-28)."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.distributed.tensor import Shard
from torch.distributed.tensor._utils import _compute_local_shape_and_global_offset
from torch.distributed.tensor.placement_types import _StridedShard

from paritrace.evidence.boxes import Box, whole
from paritrace.evidence.fingerprints import sample_indices
from paritrace.evidence.placements import Cut, box_samples, extent, held_by, offset

shapes = st.lists(st.integers(0, 9), min_size=1, max_size=3).map(tuple)


Layout = tuple[tuple[int, ...], list[tuple[int, int, int]]]


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    """A shape, and per dimension of a mesh: its size, the tensor's dimension it cuts, and how strided."""
    shape = draw(shapes)
    mesh = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    return shape, [(parts, draw(st.integers(0, len(shape) - 1)), draw(st.integers(1, 3))) for parts in mesh]


def cuts_of(mesh: list[tuple[int, int, int]], coordinate: tuple[int, ...]) -> list[Cut]:
    return [Cut(dim, parts, at, strides) for (parts, dim, strides), at in zip(mesh, coordinate, strict=True)]


@settings(max_examples=200, deadline=None)
@given(layouts())
def test_the_parts_are_a_partition_of_the_whole(layout: Layout) -> None:
    shape, mesh = layout
    seen = np.zeros(shape, dtype=int)
    for coordinate in product(*(range(parts) for parts, _, _ in mesh)):
        held = held_by(shape, cuts_of(mesh, coordinate))
        places = [[index for run in runs for index in range(*run)] for runs in held]
        assert extent(held) == tuple(len(indices) for indices in places)
        seen[np.ix_(*places)] += 1
    assert (seen == 1).all()


@settings(max_examples=200, deadline=None)
@given(layouts(), st.data())
def test_parts_are_those_of_torch(layout: Layout, data: st.DataObject) -> None:
    """Against torch's own computation of the local shape and, where the part is not empty, its first index."""
    shape, mesh = layout
    coordinate = tuple(data.draw(st.integers(0, parts - 1)) for parts, _, _ in mesh)
    placements = [Shard(dim) if n == 1 else _StridedShard(dim, split_factor=n) for _, dim, n in mesh]
    sizes = tuple(parts for parts, _, _ in mesh)
    expected, first = _compute_local_shape_and_global_offset(shape, sizes, list(coordinate), placements)
    held = held_by(shape, cuts_of(mesh, coordinate))
    assert extent(held) == tuple(expected)
    if 0 not in expected:
        assert tuple(runs[0][0] for runs in held) == tuple(first)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=3).map(tuple),
    st.lists(st.tuples(st.integers(1, 5), st.integers(0, 2)), max_size=2),
)
def test_samples_of_the_parts_unite_to_those_of_the_whole(shape: tuple[int, ...], mesh: list[tuple[int, int]]) -> None:
    """CA-28: over uneven and empty parts, every sample of the whole lies in exactly one, with the whole's value."""
    whole = np.arange(int(np.prod(shape))).reshape(shape)
    found: list[int] = []
    for coordinate in product(*(range(parts) for parts, _ in mesh)):
        held = held_by(shape, cuts_of([(parts, dim % len(shape), 1) for parts, dim in mesh], coordinate))
        start = offset(shape, held)
        assert start is not None
        indices, places = box_samples(Box(start, extent(held)), shape)
        part = whole[tuple(slice(at, at + size) for at, size in zip(start, extent(held), strict=True))]
        assert part.reshape(-1)[list(places)].tolist() == list(indices)
        assert list(indices) == sorted(indices)
        found += indices
    assert sorted(found) == list(sample_indices(whole.size))


def test_a_strided_shard_is_no_box_until_it_is_cut_further() -> None:
    """FSDP2 over tensor parallel: eight rows over (2, 2), the second dimension of the mesh cut first."""
    strided = held_by((8, 3), [Cut(0, 2, 1, strides=2)])
    assert strided == (((2, 4), (6, 8)), ((0, 3),))
    assert offset((8, 3), strided) is None
    both = held_by((8, 3), [Cut(0, 2, 1, strides=2), Cut(0, 2, 1)])
    assert offset((8, 3), both) == (6, 0)


@pytest.mark.parametrize(("size", "expected"), [(0, (0,)), (1, (1,)), (5, (5,))])
def test_an_empty_part_begins_at_the_end(size: int, expected: tuple[int, ...]) -> None:
    held = held_by((size,), [Cut(0, 4, 3)])
    assert (extent(held), offset((size,), held)) == ((0,), expected)
    assert box_samples(Box(expected, (0,)), (size,)) == ((), ())


def test_a_number_is_its_own_part() -> None:
    held = held_by((), [])
    assert (extent(held), offset((), held)) == ((), ())
    assert box_samples(whole(()), ()) == ((0,), (0,))
