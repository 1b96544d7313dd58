"""The fingerprint schemes: published vectors, frozen values, plain-Python references, every kind of array."""

import ctypes
import json
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
import torch
import xxhash
from hypothesis import given
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode

from paritrace.errors import Outcome, RequestError
from paritrace.evidence import mixing
from paritrace.evidence.fingerprints import (
    MAX_REGIONS,
    NUM_SAMPLES,
    Scheme,
    elements,
    fingerprint,
    fold_xor,
    indexed,
    mix_regions,
    region_ranges,
    sample_indices,
    strong,
    strong_regions,
    xor_regions,
)
from tests.conftest import Golden
from tests.evidence import reference

SIZES = [*range(70), 255, 256, 257, 1001, 4096, 4099]


def pattern(num_bytes: int) -> bytes:
    """The bytes of the published vectors: byte i is (7 i + i // 256 + 3) mod 256."""
    return bytes((7 * i + i // 256 + 3) % 256 for i in range(num_bytes))


# --- published vectors ---------------------------------------------------------------------------------------------


def test_the_mix_is_splitmix64() -> None:
    """The first outputs for seeds 0 and 1234567, as published with the reference implementations."""
    step = mixing.GOLDEN
    assert [mixing.mix(n * step & mixing.MASK) for n in range(3)] == [
        0xE220A8397B1DCDAF,
        0x6E789E6AA1B965F4,
        0x06C45D188009454F,
    ]
    assert [mixing.mix((1234567 + n * step) & mixing.MASK) for n in range(5)] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


@pytest.mark.parametrize(
    ("text", "value"),
    [(b"", 0x2D06800538D394C2), (b"a", 0xE6C632B61E964E1F), (b"abc", 0x78AF5F94892F3950)],
)
def test_strong_is_xxh3_64_with_seed_0(text: bytes, value: int) -> None:
    assert strong(text) == value


def test_the_xor_of_known_words() -> None:
    data = b"".join(word.to_bytes(4, "little") for word in (1, 2, 4, 8, 16)) + b"\x80"
    assert xor_regions(data, 1) == (0x9F,)
    assert xor_regions(data, 4) == (1 ^ 2, 4 ^ 8, 16, 0x80)
    assert region_ranges(len(data), 4) == ((0, 8), (8, 16), (16, 20), (20, 21))


def test_values_are_frozen(golden: Golden) -> None:
    """CA-20: a change of any of these is a change of format, and needs a new scheme name."""
    frozen = {
        f"{scheme}, {size} bytes, {regions} regions": [
            f"{value:x}" for value in fingerprint(pattern(size), scheme, regions).values
        ]
        for scheme in Scheme
        for size in (0, 1, 2, 3, 4, 63, 64, 4099)
        for regions in (1, 4, 64)
    }
    wide = {f"elements-u64, item size {size}": f"{elements(pattern(160), size):x}" for size in (1, 2, 4, 8, 16)}
    wide |= {f"indexed-u64, item size {size}": f"{indexed(pattern(160), size):x}" for size in (1, 2, 4, 8, 16)}
    samples = {f"samples of {n}": list(sample_indices(n)) for n in (3, 64, 65, 1000, 10**12)}
    golden("fingerprints.json", json.dumps(frozen | wide | samples, indent=1) + "\n")


# --- against the references ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("num_bytes", SIZES)
def test_every_length_and_number_of_regions(num_bytes: int) -> None:
    data = pattern(num_bytes)
    for regions in range(1, MAX_REGIONS + 1):
        assert xor_regions(data, regions) == reference.flat_u32_le_v1(data, regions)
    for regions in (1, 2, 3, 4, 7, 63, 64):
        assert mix_regions(data, regions) == reference.mix_u32_le_v1(data, regions)
        ranges = region_ranges(num_bytes, regions)
        assert strong_regions(data, regions) == tuple(xxhash.xxh3_64_intdigest(data[a:b]) for a, b in ranges)


@given(st.binary(max_size=600), st.integers(1, MAX_REGIONS))
def test_regions_cover_the_bytes_without_gap(data: bytes, regions: int) -> None:
    ranges = region_ranges(len(data), regions)
    assert len(ranges) == regions
    assert b"".join(data[start:stop] for start, stop in ranges) == data
    assert tuple(xor_regions(data[a:b], 1)[0] for a, b in ranges) == xor_regions(data, regions)


@given(st.binary(max_size=600), st.sampled_from((1, 2, 4, 8, 16)))
def test_elements_against_the_reference(data: bytes, itemsize: int) -> None:
    whole = data[: len(data) // itemsize * itemsize]
    assert elements(whole, itemsize) == reference.elements_u64(whole, itemsize)


def test_more_than_one_block() -> None:
    data = np.random.default_rng(5).integers(0, 256, 3 * 8 * mixing.BLOCK + 16, dtype=np.uint8)
    for itemsize in (1, 2, 4, 8, 16):
        block = data[: data.size // itemsize * itemsize]
        halves = (block[: block.size // 2 // itemsize * itemsize], block[block.size // 2 // itemsize * itemsize :])
        assert elements(block, itemsize) == sum(elements(half, itemsize) for half in halves) & mixing.MASK
    assert mix_regions(data[: 4 * mixing.BLOCK + 3 * 4].tobytes(), 3) == reference.mix_u32_le_v1(
        data[: 4 * mixing.BLOCK + 12].tobytes(), 3
    )


@pytest.mark.parametrize("offset", [1, 2, 3])
def test_memory_need_not_be_aligned(offset: int) -> None:
    data = pattern(803)
    shifted = memoryview(bytes(offset) + data)[offset:]
    assert xor_regions(shifted, 4) == xor_regions(data, 4)
    assert mix_regions(shifted, 4) == mix_regions(data, 4)
    assert elements(shifted[:800], 8) == elements(data[:800], 8)


# --- samples -------------------------------------------------------------------------------------------------------


@given(st.integers(0, 10**13))
def test_sample_indices_are_distinct_and_in_range(num_elements: int) -> None:
    indices = sample_indices(num_elements)
    assert len(indices) == min(num_elements, NUM_SAMPLES)
    assert list(indices) == sorted(set(indices))
    assert all(0 <= index < num_elements for index in indices)
    widest = -(-num_elements // NUM_SAMPLES)
    assert all(later - earlier < 2 * widest for earlier, later in pairwise(indices))


def test_a_period_of_the_data_does_not_hide_from_the_samples() -> None:
    residues = {index % 256 for index in sample_indices(256 * 512)}
    assert len(residues) > 32


# --- the public function -------------------------------------------------------------------------------------------

VALUES = np.arange(-30, 30, dtype=np.float32).reshape(5, 12)


class OnlyInterface:
    """An array that offers `__array_interface__` alone."""

    def __init__(self, values: npt.NDArray[np.float32]) -> None:
        self.__array_interface__ = values.__array_interface__
        self.values = values


class OnlyDlpack:
    """An array that offers DLPack alone, as JAX does for most dtypes."""

    def __init__(self, values: npt.NDArray[np.float32]) -> None:
        self.values = values

    def __dlpack__(self, **options: object) -> object:
        return self.values.__dlpack__(**options)  # type: ignore[arg-type]

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.values.__dlpack_device__()


@pytest.mark.parametrize("scheme", Scheme)
@pytest.mark.parametrize(
    "array",
    [
        torch.from_numpy(VALUES.copy()),
        torch.from_numpy(VALUES.T.copy()).T,
        torch.nn.Parameter(torch.from_numpy(VALUES.copy())),
        np.asfortranarray(VALUES),
        VALUES.astype(">f4"),
        memoryview(VALUES),  # type: ignore[arg-type]  # arrays are buffers; their types say so from 3.12 on
        OnlyInterface(VALUES),
        OnlyDlpack(VALUES),
    ],
    ids=["torch", "transposed", "parameter", "fortran", "big_endian", "memoryview", "interface", "dlpack"],
)
def test_any_array_in_logical_order(array: object, scheme: Scheme) -> None:
    assert fingerprint(array, scheme, regions=3) == fingerprint(VALUES, scheme, regions=3)


def test_narrow_torch_dtypes_by_address() -> None:
    values = torch.randn(33, generator=torch.Generator().manual_seed(0))
    for dtype in (torch.bfloat16, torch.float8_e4m3fn, torch.bool, torch.complex128):
        tensor = values.to(dtype)
        found = fingerprint(tensor, "elements-u64")
        data = bytes(tensor.view(torch.uint8).tolist())
        assert found.itemsize == tensor.element_size()
        assert found.values == (elements(data, found.itemsize),)
        assert fingerprint(tensor, "xxh3-64").values == (strong(data),)


def test_conjugate_and_negative_views_are_resolved() -> None:
    values = torch.tensor([1 + 2j, 3 - 4j])
    assert fingerprint(values.conj()) == fingerprint(torch.tensor([1 - 2j, 3 + 4j]))
    assert fingerprint(values.conj().imag) == fingerprint(torch.tensor([-2.0, 4.0]))


def test_torch_storages_stay_resizable() -> None:
    """CA-33: one `.numpy()` would make the storage non-resizable for good."""
    tensor = torch.arange(24.0).reshape(4, 6)
    for array in (tensor, tensor.T, tensor[1:, 2:]):
        fingerprint(array, regions=4)
    assert tensor.untyped_storage().resizable()


def test_the_array_is_not_changed_and_may_be_read_only() -> None:
    values = VALUES.copy()
    values.setflags(write=False)
    assert fingerprint(values) == fingerprint(VALUES)
    assert np.array_equal(values, VALUES)


def test_the_layout_is_part_of_the_result() -> None:
    found = fingerprint(np.zeros(3, dtype=np.float16), regions=4)
    assert found.byte_ranges == ((0, 4), (4, 6), (6, 6), (6, 6))
    assert (found.logical_nbytes, found.itemsize, found.values) == (6, 2, (0, 0, 0, 0))
    assert fingerprint(np.zeros(5), "elements-u64", regions=2).byte_ranges == ((0, 24), (24, 40))


def test_empty_arrays() -> None:
    for array in (np.zeros((0, 4), dtype=np.float32), torch.empty(3, 0), b""):
        assert fingerprint(array, regions=64).values == (0,) * 64
        assert fingerprint(array, "elements-u64").values == (0,)
        assert fingerprint(array, "xxh3-64").values == (0x2D06800538D394C2,)


@pytest.mark.parametrize("regions", [0, -1, 65, 1.0, True, "4"])
def test_regions_outside_1_to_64_are_refused(regions: int) -> None:
    with pytest.raises(RequestError, match="1 to 64") as raised:
        fingerprint(VALUES, regions=regions)
    assert (raised.value.outcome, raised.value.code) == (Outcome.REFUSED, "fingerprint_regions")


def test_an_unknown_scheme_is_refused() -> None:
    with pytest.raises(RequestError, match="md5") as raised:
        fingerprint(VALUES, scheme="md5")
    assert raised.value.code == "fingerprint_scheme"


@pytest.mark.parametrize(
    "array",
    [
        np.array(["a"]),
        np.array([None]),
        np.zeros(2, dtype=np.longdouble),
        "text",
        {1},
        torch.eye(3).to_sparse(),
        torch.empty(3, device="meta"),
    ],
    ids=["strings", "objects", "longdouble", "text", "set", "sparse", "meta"],
)
def test_what_has_no_plain_bytes_is_refused(array: object) -> None:
    with pytest.raises(RequestError) as raised:
        fingerprint(array)
    assert (raised.value.outcome, raised.value.code) == (Outcome.REFUSED, "fingerprint_array")


def released(*, transposed: bool = False) -> torch.Tensor:
    """300 elements whose storage was given back, as FSDP does."""
    tensor = torch.ones(300)
    view = tensor.view(15, 20).T if transposed else tensor
    tensor.untyped_storage().resize_(0)
    return view


def fake() -> torch.Tensor:
    with FakeTensorMode():
        return torch.ones(3)


@pytest.mark.parametrize(
    "make", [released, lambda: released(transposed=True), fake], ids=["released", "strided", "fake"]
)
def test_a_tensor_without_memory_is_refused_and_never_read(make: Callable[[], torch.Tensor]) -> None:
    with pytest.raises(RequestError) as raised:
        fingerprint(make())
    assert raised.value.code == "fingerprint_array"


def test_a_tensor_inside_a_function_transform_is_refused() -> None:
    def inside(row: torch.Tensor) -> torch.Tensor:
        with pytest.raises(RequestError):
            fingerprint(row)
        return row.sum()

    assert torch.func.vmap(inside)(torch.ones(3, 4)).tolist() == [4.0, 4.0, 4.0]


@given(st.integers(0, 2**32 - 1))
def test_a_folded_xor_is_that_of_the_narrow_elements(word: int) -> None:
    raw = word.to_bytes(4, "little")
    assert fold_xor(word, 1) == raw[0] ^ raw[1] ^ raw[2] ^ raw[3]
    assert fold_xor(word, 2) == int.from_bytes(raw[:2], "little") ^ int.from_bytes(raw[2:], "little")
    assert fold_xor(word, 4) == fold_xor(word, 8) == word


def test_ctypes_buffers_as_a_capture_reads_them() -> None:
    data = pattern(101)
    buffer = (ctypes.c_uint8 * 101).from_buffer_copy(data)
    assert xor_regions(buffer, 4) == xor_regions(data, 4)
    assert strong(buffer) == strong(data)
    assert strong_regions(buffer, 4) == strong_regions(data, 4)
    assert elements(buffer, 1) == elements(data, 1)
