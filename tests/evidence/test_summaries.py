"""The summary of a slot: moments, counts, samples and gaps for every dtype (CA-5, CA-28)."""

import math

import msgspec
import numpy as np
import numpy.typing as npt
import pytest
import torch

from paritrace.errors import InternalError
from paritrace.evidence.byte_values import byte_is_negative_zero, byte_is_subnormal, byte_values
from paritrace.evidence.calls import Counts, Detail, Moments
from paritrace.evidence.dtypes import DTYPES, dtype_of
from paritrace.evidence.fingerprints import elements, sample_indices, strong, strong_regions, xor_regions
from paritrace.evidence.gaps import CaptureGap, Gap
from paritrace.evidence.statistics import BLOCK, LANES
from paritrace.evidence.summaries import SlotSummary, element_sum, elements_and_squares, summarise

FINITE_ONLY = ("float64", "float32", "float16", "bfloat16")
TORCH_BYTES = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu")
SIZES = (0, 1, 2, 63, 64, 65, 300, BLOCK - 1, BLOCK + 65)


def summary_of(tensor: torch.Tensor, regions: int = 4) -> SlotSummary:
    data = np.array(tensor.contiguous().view(torch.uint8).tolist() if tensor.numel() else [], dtype=np.uint8)
    name = str(tensor.dtype).removeprefix("torch.")
    return summarise(data.reshape(-1), dtype=name, num_elements=tensor.numel(), regions=regions)


def random_bytes(count: int, seed: int = 1) -> npt.NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, count, dtype=np.uint8)


def lane_sum(values: list[float]) -> float:
    """The order of summation as documented: 64 lanes, each one after the other, then exactly."""
    lanes = [0.0] * LANES
    for at, value in enumerate(values):
        lanes[at % LANES] += value
    return math.fsum(lanes)


# --- dtypes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TORCH_BYTES)
def test_tables_of_one_byte_floats_are_those_of_torch(name: str) -> None:
    expected = torch.arange(256, dtype=torch.uint8).view(getattr(torch, name)).double()
    values = torch.tensor(byte_values(name).tolist(), dtype=torch.float64)
    assert torch.equal(values.isnan(), expected.isnan())
    assert torch.equal(values.nan_to_num(nan=0.0), expected.nan_to_num(nan=0.0))
    zeros = (expected == 0) & torch.signbit(expected)
    assert torch.tensor(byte_is_negative_zero(name).tolist()).equal(zeros)


def test_subnormals_of_one_byte_floats() -> None:
    for name in ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"):
        smallest = torch.finfo(getattr(torch, name)).smallest_normal
        values = byte_values(name)
        expected = (np.abs(values) < smallest) & (values != 0)
        assert byte_is_subnormal(name).tolist() == expected.tolist()
    assert not byte_is_subnormal("float8_e8m0fnu").any()
    assert not byte_is_subnormal("int8").any()


def test_item_sizes_are_those_of_torch() -> None:
    for name, known in DTYPES.items():
        assert known.itemsize == getattr(torch, name).itemsize


def test_every_dense_dtype_of_torch_is_summarised_or_has_a_stated_gap() -> None:
    names = {str(value).removeprefix("torch.") for value in vars(torch).values() if isinstance(value, torch.dtype)}
    assert set(DTYPES) <= names
    for name in names:
        data = random_bytes(getattr(torch, name).itemsize * 5)
        summary = summarise(data, dtype=name, num_elements=5, regions=4)
        assert (summary.statistics_gap is None) == (name in DTYPES)
        assert (summary.moments is None) == (summary.counts is None) == (name not in DTYPES)


@pytest.mark.parametrize("name", ["float4_e2m1fn_x2", "quint4x2", "bits16", "rng", "something_new"])
def test_a_dtype_without_statistics_has_fingerprints_and_says_why(name: str) -> None:
    data = random_bytes(48)
    summary = summarise(data, dtype=name, num_elements=48, regions=4)
    assert summary.statistics_gap == Gap(CaptureGap.UNSUPPORTED_DTYPE, name)
    assert summary.moments is None
    assert summary.counts is None
    assert summary.elements == f"{elements(data, 1):016x}"
    total, squares = elements_and_squares(data, name)
    assert total == elements(data, 1)
    assert math.isnan(squares)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", DTYPES)
def test_no_bytes_crash_and_the_summary_is_written_as_a_detail(name: str, size: int) -> None:
    known = dtype_of(name)
    data = random_bytes(size * known.itemsize)
    summary = summarise(data, dtype=name, num_elements=size, regions=4)
    assert summary.bits == f"{strong(data):016x}"
    assert summary.xor == "".join(f"{value:08x}" for value in xor_regions(data, 4))
    assert summary.regions == "".join(f"{value:016x}" for value in strong_regions(data, 4))
    assert summary.elements == f"{elements(data, known.itemsize):016x}"
    total, squares = elements_and_squares(data, name)
    assert total == element_sum(data, name) == int(summary.elements, 16)
    assert summary.moments is not None
    assert summary.counts is not None
    finite = not summary.counts.nan + summary.counts.positive_infinity + summary.counts.negative_infinity
    if finite and summary.moments.sum_squares is not None:
        assert summary.moments.sum_squares == squares
    if summary.counts.nan:
        assert math.isnan(squares)
    detail = Detail(call=0, side="o", slot=0, **msgspec.structs.asdict(summary))
    assert msgspec.json.decode(msgspec.json.encode(detail), type=Detail) == detail


def test_a_fingerprint_just_taken_is_not_taken_again() -> None:
    data = random_bytes(400)
    taken = summarise(data, dtype="float32", num_elements=100, regions=4, bits=f"{strong(data):016x}")
    assert taken == summarise(data, dtype="float32", num_elements=100, regions=4)


def test_a_size_that_does_not_fit_the_dtype_is_a_fault_of_ours() -> None:
    with pytest.raises(InternalError):
        summarise(bytes(9), dtype="float32", num_elements=2, regions=1)


# --- moments -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FINITE_ONLY)
@pytest.mark.parametrize("size", [1, 64, 1000, BLOCK + 130])
def test_moments_follow_the_documented_order(name: str, size: int) -> None:
    generator = torch.Generator().manual_seed(size)
    tensor = (torch.randn(size, generator=generator, dtype=torch.float64) * 1000).to(getattr(torch, name))
    values = tensor.double().tolist()
    moments = summary_of(tensor).moments
    assert moments == Moments(
        min=min(values),
        max=max(values),
        sum=lane_sum(values),
        sum_squares=lane_sum([value * value for value in values]),
        abs_max=max(map(abs, values)),
    )


@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "int32", "int64", "uint16", "uint32", "uint64"])
def test_moments_of_integers(name: str) -> None:
    numbers = np.dtype(name)
    values = random_bytes(500 * numbers.itemsize).view(numbers)
    summary = summarise(values.view(np.uint8), dtype=name, num_elements=500, regions=4)
    floats = [float(value) for value in values.tolist()]
    assert summary.moments is not None
    assert summary.counts is not None
    assert (summary.moments.min, summary.moments.max) == (min(floats), max(floats))
    expected = math.fsum(floats) if numbers.itemsize == 1 else lane_sum(floats)
    assert summary.moments.sum == expected
    assert summary.counts == Counts(0, 0, 0, floats.count(0.0), 0, 0, 0)


@pytest.mark.parametrize("name", TORCH_BYTES)
def test_moments_of_one_byte_floats_are_exact(name: str) -> None:
    tensor = torch.arange(256, dtype=torch.uint8).repeat(3).view(getattr(torch, name))
    finite = [value for value in tensor.double().tolist() if math.isfinite(value)]
    moments = summary_of(tensor).moments
    assert moments is not None
    assert moments.sum == math.fsum(finite)
    assert moments.sum_squares == math.fsum(value * value for value in finite)
    assert (moments.min, moments.max) == (min(finite), max(finite))


def test_complex_numbers_are_two_numbers_each() -> None:
    tensor = torch.tensor([1 + 2j, -3 + 0.5j, complex(math.nan, 1)])
    summary = summary_of(torch.view_as_real(tensor))
    as_complex = summarise(bytes(torch.view_as_real(tensor).view(torch.uint8).flatten().tolist()),
                           dtype="complex64", num_elements=3, regions=4)  # fmt: skip
    assert as_complex.moments == summary.moments
    assert as_complex.counts == summary.counts
    assert as_complex.elements != summary.elements
    assert as_complex.moments is not None
    assert as_complex.moments.sum_squares == 1 + 4 + 9 + 0.25 + 1


def test_moments_leave_out_what_is_not_finite() -> None:
    for name in FINITE_ONLY:
        tensor = torch.tensor([math.nan, 1.0, math.inf, -2.0, -math.inf, math.nan], dtype=getattr(torch, name))
        summary = summary_of(tensor)
        assert summary.moments == Moments(min=-2.0, max=1.0, sum=-1.0, sum_squares=5.0, abs_max=2.0)
        assert summary.counts is not None
        assert (summary.counts.nan, summary.counts.positive_infinity, summary.counts.negative_infinity) == (2, 1, 1)


def test_without_a_finite_value_there_are_no_moments() -> None:
    for tensor in (torch.tensor([math.nan, math.inf]), torch.empty(0), torch.tensor([math.inf], dtype=torch.float16)):
        assert summary_of(tensor).moments == Moments(None, None, None, None, None)
    nothing = summarise(bytes([0x7F, 0xFF]), dtype="float8_e4m3fn", num_elements=2, regions=1)
    assert nothing.moments == Moments(None, None, None, None, None)


@pytest.mark.parametrize("name", ["float64", "float32", "float16", "bfloat16", "float8_e5m2"])
def test_a06_the_squares_of_the_state_inventory_show_what_is_not_finite(name: str) -> None:
    """A gradient norm over finite values alone was 0.0 while every gradient was NaN."""
    for value in (math.nan, math.inf, -math.inf):
        tensor = torch.tensor([1.0, value, 2.0] * 50).to(getattr(torch, name))
        data = np.array(tensor.view(torch.uint8).tolist(), dtype=np.uint8)
        squares = elements_and_squares(data, name)[1]
        assert math.isnan(squares) if math.isnan(value) else squares == math.inf
    finite = torch.tensor([1.0, 2.0] * 50).to(getattr(torch, name))
    assert elements_and_squares(np.array(finite.view(torch.uint8).tolist(), dtype=np.uint8), name)[1] == 250.0


def test_a_sum_beyond_float64_is_absent_and_never_a_wrong_number() -> None:
    large = torch.full((70,), 1.5e308, dtype=torch.float64)
    moments = summary_of(large).moments
    assert moments is not None
    assert (moments.min, moments.sum, moments.sum_squares) == (1.5e308, None, None)
    data = np.array(large.view(torch.uint8).tolist(), dtype=np.uint8)
    assert elements_and_squares(data, "float64")[1] == math.inf


# --- counts and flags ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FINITE_ONLY)
def test_counts_of_zeros_and_subnormals(name: str) -> None:
    dtype = getattr(torch, name)
    tiny = torch.finfo(dtype).smallest_normal
    tensor = torch.tensor([0.0, -0.0, -0.0, tiny, tiny / 2, -tiny / 4, 1.0], dtype=dtype)
    counts = summary_of(tensor).counts
    assert counts is not None
    assert (counts.zero, counts.negative_zero, counts.subnormal) == (3, 2, 2)


def test_low_bits_show_a_detour_through_bfloat16() -> None:
    values = torch.randn(4096, generator=torch.Generator().manual_seed(3))
    detour = summary_of(values.bfloat16().float()).counts
    direct = summary_of(values).counts
    assert detour is not None
    assert direct is not None
    assert detour.low_bits_zero == 4096
    assert direct.low_bits_zero < 4
    double = summary_of(values.bfloat16().double()).counts
    assert double is not None
    assert double.low_bits_zero == 0


def test_minimum_and_maximum_do_not_depend_on_which_zero_comes_first() -> None:
    one, other = summary_of(torch.tensor([0.0, -0.0])), summary_of(torch.tensor([-0.0, 0.0]))
    assert one.moments == other.moments
    assert one.moments is not None
    assert math.copysign(1.0, one.moments.min or 0.0) == 1.0
    assert one.bits != other.bits


@pytest.mark.parametrize(
    ("tensor", "degenerate"),
    [
        (torch.zeros(3), True),
        (torch.full((64,), 0.5), True),
        (torch.full((63,), 0.5), True),
        (torch.ones(10, dtype=torch.bool), True),
        (torch.full((1000,), 1 + 1j), True),
        (torch.tensor([0.5]), False),
        (torch.tensor([0.0]), True),
        (torch.arange(1.0, 9.0), False),
        (torch.empty(0), False),
        (torch.tensor([1, 2, 1, 2], dtype=torch.int16), False),
    ],
)
def test_degenerate_marks_what_an_xor_cannot_tell_apart(tensor: torch.Tensor, degenerate: bool) -> None:
    assert summary_of(tensor).degenerate is degenerate


def test_a_constant_but_for_one_unsampled_element_is_not_constant() -> None:
    tensor = torch.full((100_000,), 0.5)
    tensor[next(index for index in range(100_000) if index not in sample_indices(100_000))] = 0.25
    assert not summary_of(tensor, regions=1).degenerate


# --- samples -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float8_e5m2", "int64", "complex128", "bool"])
def test_samples_are_the_elements_at_the_indices(name: str) -> None:
    known = dtype_of(name)
    data = random_bytes(1000 * known.itemsize)
    summary = summarise(data, dtype=name, num_elements=1000, regions=4)
    rows = data.reshape(1000, known.itemsize)
    assert bytes.fromhex(summary.samples) == b"".join(rows[index].tobytes() for index in sample_indices(1000))


def test_the_samples_estimate_the_relative_error() -> None:
    """CA-28: within 0.7 to 1.2 times, for a difference that touches every element."""
    generator = torch.Generator().manual_seed(11)
    ratios: list[float] = []
    for _ in range(40):
        value = torch.randn(20_000, generator=generator)
        error = 1e-3 * torch.randn(20_000, generator=generator)
        sampled = [
            torch.frombuffer(bytearray.fromhex(summary_of(tensor).samples), dtype=torch.float32)
            for tensor in (value, value + error)
        ]
        estimate = (sampled[1] - sampled[0]).norm() / sampled[0].norm()
        ratios.append(float(estimate / (error.norm() / value.norm())))
    inside = [0.7 <= ratio <= 1.2 for ratio in ratios]
    assert sum(inside) >= 0.9 * len(ratios)
