"""Every kind of tensor has a summary or a stated gap, and none is disturbed or breaks anything (CA-5, CA-33, P6)."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode

from paritrace.capture.pytorch.kinds import Kinds, KnownKind
from paritrace.capture.pytorch.memory import (
    dtype_name,
    fingerprint_in_memory_order,
    geometry_of,
    holds_bytes,
    logical_buffer,
    scalar_value,
)
from paritrace.capture.pytorch.summarising import Summarising
from paritrace.evidence import calls
from paritrace.evidence.calls import Kind
from paritrace.evidence.definition import Definition
from paritrace.evidence.gaps import CaptureGap

DTYPES = sorted({value for value in vars(torch).values() if isinstance(value, torch.dtype)}, key=str)
QUANTISED = {torch.qint8, torch.quint8, torch.qint32}


def kind_of(tensor: torch.Tensor) -> tuple[KnownKind, Kind]:
    written: list[Definition] = []
    known = Kinds(written.append).of(tensor)
    (kind,) = written
    assert isinstance(kind, Kind)
    return known, kind


def detail_of(tensor: torch.Tensor) -> calls.Detail:
    known, _ = kind_of(tensor)
    assert known.readable
    return Summarising(4).detail(tensor, known, call=0, side="o", slot=0)[0]


def raw(tensor: torch.Tensor) -> bytes:
    """The logical bytes by another way than ours."""
    if tensor.dtype.is_complex:
        tensor = torch.view_as_real(tensor)
    whole = tensor.clone(memory_format=torch.contiguous_format).reshape(-1)
    return whole.view(torch.uint8).numpy().tobytes()


def of_dtype(dtype: torch.dtype) -> torch.Tensor | None:
    """Some values of a dtype, or None where torch has no tensors of it."""
    try:
        if dtype in QUANTISED:
            return torch.quantize_per_tensor(torch.tensor([0.0, 1.0, 2.0, 3.0]), 0.5, 1, dtype)
        data = torch.arange(1, 65, dtype=torch.uint8)
        return data.view(dtype).reshape(2, -1) if dtype is not torch.bool else torch.tensor([[True, False]])
    except RuntimeError:
        try:
            return torch.empty(4, dtype=dtype)
        except (RuntimeError, NotImplementedError):
            return None


@pytest.mark.filterwarnings("ignore:.*quantize.*:UserWarning")
@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_name)
def test_every_dtype_has_a_summary_or_a_gap(dtype: torch.dtype) -> None:
    tensor = of_dtype(dtype)
    if tensor is None:
        pytest.skip("torch makes no tensor of this dtype")
    known, kind = kind_of(tensor)
    assert kind.dtype == dtype_name(dtype)
    assert known.readable, "a strided tensor on the CPU has bytes"
    detail = detail_of(tensor)
    assert len(detail.bits) == len(detail.elements) == 16
    assert len(detail.regions) == 4 * 16
    assert (detail.moments is None) == (detail.counts is None) == (detail.statistics_gap is not None)
    if detail.statistics_gap is not None:
        assert detail.statistics_gap.gap is CaptureGap.UNSUPPORTED_DTYPE
    if dtype.is_floating_point and dtype.itemsize >= 2:
        assert detail.moments is not None
        assert detail.samples


@pytest.mark.parametrize(
    ("values", "counts"),
    [
        ([0.0, -0.0, 1.0], calls.Counts(0, 0, 0, 2, 1, 0, 3)),
        ([float("nan")] * 3, calls.Counts(3, 0, 0, 0, 0, 0, 0)),
        ([float("inf"), float("-inf"), 2.0], calls.Counts(0, 1, 1, 0, 0, 0, 3)),
        ([1e-40, 1.0], calls.Counts(0, 0, 0, 0, 0, 1, 1)),
    ],
)
def test_counts_of_what_is_not_a_plain_number(values: list[float], counts: calls.Counts) -> None:
    found = detail_of(torch.tensor(values)).counts
    assert found is not None
    assert (found.nan, found.positive_infinity, found.negative_infinity) == (
        counts.nan,
        counts.positive_infinity,
        counts.negative_infinity,
    )
    assert (found.zero, found.negative_zero, found.subnormal) == (
        counts.zero,
        counts.negative_zero,
        counts.subnormal,
    )


def test_nothing_but_nan_has_no_moments_but_a_summary() -> None:
    moments = detail_of(torch.full((7,), float("nan"))).moments
    assert moments is not None
    assert (moments.min, moments.max, moments.abs_max) == (None, None, None)


VIEWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "contiguous": lambda t: t,
    "transposed": lambda t: t.transpose(0, 2),
    "permuted": lambda t: t.permute(1, 2, 0),
    "strided": lambda t: t[::2, :, 1::2],
    "offset": lambda t: t[1:, 1:, 1:],
    "expanded": lambda t: t[:1].expand(5, -1, -1),
    "broadcast scalar": lambda t: t[0, 0, 0].expand(3, 4),
    "unfolded": lambda t: t.flatten().unfold(0, 4, 2),
    "zero size": lambda t: t[:0],
    "zero size inside": lambda t: t[:, 1:1],
    "scalar": lambda t: t[1, 1, 1],
    "size one dims": lambda t: t[:, :1, :1],
    "channels last": lambda t: t.unsqueeze(0).to(memory_format=torch.channels_last),
    "diagonal": lambda t: t.diagonal(0, 0, 1),
}
EXPANDED = {"expanded", "broadcast scalar"}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.uint8, torch.float64, torch.complex128])
@pytest.mark.parametrize("name", VIEWS)
def test_any_view_is_read_in_logical_order_and_in_memory_order(name: str, dtype: torch.dtype) -> None:
    base = torch.arange(60).reshape(3, 4, 5).to(dtype)
    view = VIEWS[name](base)
    geometry = geometry_of(view)
    assert geometry.gap is None
    assert holds_bytes(view, geometry, view.data_ptr())
    assert bytes(logical_buffer(view.data_ptr(), geometry)) == raw(view)
    assert geometry.num_elements == view.numel()
    assert geometry.contiguous == (view.is_contiguous() or view.numel() == 0)
    strides, sizes = tuple(view.stride()), tuple(view.shape)
    held = [dim for dim in range(view.dim()) if strides[dim] > 0 and sizes[dim] > 1]
    order = sorted(held, key=lambda dim: (-strides[dim], -sizes[dim]))
    narrowed = view
    for dim in range(view.dim()):
        if dim not in held and view.numel():
            narrowed = narrowed.narrow(dim, 0, 1)
    others = [dim for dim in range(view.dim()) if dim not in held]
    expected = b"" if view.numel() == 0 else raw(narrowed.permute((*others, *order)))
    found = fingerprint_in_memory_order(view.data_ptr(), geometry)
    assert found == xxhash.xxh3_64_hexdigest(expected)


def test_a_large_expanded_tensor_costs_no_memory() -> None:
    """A mask of one row, expanded to what would be a terabyte: summarising it must not end the workload."""
    tensor = torch.ones(1, 1 << 10).expand(1 << 28, 1 << 10)
    known, kind = kind_of(tensor)
    assert kind.num_elements == 1 << 38
    assert not known.readable
    assert known.geometry.gap is not None
    assert known.geometry.gap.gap is CaptureGap.OVER_BUDGET


def odd_tensors() -> Iterator[tuple[str, Callable[[], torch.Tensor], CaptureGap | None]]:
    complex_ = torch.complex(torch.ones(3), torch.ones(3))
    yield "complex", lambda: complex_, None
    yield "conj", complex_.conj, CaptureGap.UNSUPPORTED_LAYOUT
    yield "neg", lambda: complex_.conj().imag, CaptureGap.UNSUPPORTED_LAYOUT
    yield "sparse coo", lambda: torch.eye(3).to_sparse(), CaptureGap.UNSUPPORTED_LAYOUT
    yield "sparse csr", lambda: torch.eye(3).to_sparse_csr(), CaptureGap.UNSUPPORTED_LAYOUT
    yield "sparse bsr", lambda: torch.eye(4).to_sparse_bsr((2, 2)), CaptureGap.UNSUPPORTED_LAYOUT
    yield "mkldnn", lambda: torch.ones(3).to_mkldnn(), CaptureGap.UNSUPPORTED_LAYOUT
    yield "nested", lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), CaptureGap.UNSUPPORTED_LAYOUT
    yield (
        "nested jagged",
        lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged),
        CaptureGap.NO_DATA,
    )
    yield "meta", lambda: torch.ones(3, device="meta"), CaptureGap.NO_DATA
    yield "fake", lambda: FakeTensorMode().from_tensor(torch.ones(3)), CaptureGap.NO_DATA
    yield "parameter", lambda: torch.nn.Parameter(torch.ones(3)), None
    yield "buffer", lambda: torch.nn.Buffer(torch.ones(3)), None
    yield "subclass", lambda: torch.ones(3).as_subclass(Plain), None
    yield "requires grad", lambda: torch.ones(3, requires_grad=True), None
    yield "zero tensor", lambda: torch._efficientzerotensor(3), None
    yield "inference", inference_tensor, None
    yield "scalar", lambda: torch.tensor(3.0), None


class Plain(torch.Tensor):
    """A subclass without a dispatch of its own."""


def inference_tensor() -> torch.Tensor:
    with torch.inference_mode():
        return torch.ones(3)


ODD = list(odd_tensors())


@pytest.mark.filterwarnings("ignore:.*(prototype|beta|in beta).*:UserWarning")
@pytest.mark.parametrize(("make", "gap"), [pytest.param(make, gap, id=name) for name, make, gap in ODD])
def test_odd_tensors_have_bytes_or_say_why_not(make: Callable[[], torch.Tensor], gap: CaptureGap | None) -> None:
    tensor = make()
    known, kind = kind_of(tensor)
    assert known.readable is (gap is None)
    if gap is not None:
        assert known.geometry.gap is not None
        assert known.geometry.gap.gap is gap
        assert scalar_value(tensor) is None
    elif holds_bytes(tensor, known.geometry, tensor.data_ptr()):
        assert detail_of(tensor).bits == xxhash.xxh3_64_hexdigest(raw(tensor.detach().clone()))
    else:
        assert tensor.data_ptr() == 0
    assert kind.tensor_class
    assert Kinds(lambda _: None).of(tensor).readable == known.readable


def test_tensors_under_functorch_say_so() -> None:
    seen: list[CaptureGap | None] = []

    def look(value: torch.Tensor) -> torch.Tensor:
        gap = kind_of(value)[0].geometry.gap
        seen.append(None if gap is None else gap.gap)
        return value.sum()

    torch.func.vmap(look)(torch.ones(2, 3))
    torch.func.grad(look)(torch.ones(3))
    torch.func.vmap(torch.func.grad(look))(torch.ones(2, 3))
    assert seen == [CaptureGap.NO_DATA] * 3


def test_a_wrapper_subclass_has_no_bytes_of_its_own() -> None:
    class Wrapper(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def, override]
            raise AssertionError("we must not run operators on it")

    wrapped = torch.Tensor._make_wrapper_subclass(Wrapper, (2, 3))
    known, kind = kind_of(wrapped)
    assert not known.readable
    assert (kind.tensor_class, kind.shape) == ("Wrapper", (2, 3))


def test_a_storage_that_was_freed_is_not_read() -> None:
    tensor = torch.ones(8)
    first = tensor[:1]
    tensor.untyped_storage().resize_(0)
    known, _ = kind_of(tensor)
    assert not holds_bytes(tensor, known.geometry, tensor.data_ptr())
    assert scalar_value(first) is None


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int64, torch.bool]
)
def test_scalars_are_read_exactly(dtype: torch.dtype) -> None:
    assert scalar_value(torch.tensor(1, dtype=dtype)) == 1.0
    assert scalar_value(torch.tensor([[0]], dtype=dtype)) == 0.0


@pytest.mark.parametrize("value", [0.1, -1.5e-30, float("inf"), float("nan")])
def test_a_float_scalar_keeps_its_bits(value: float) -> None:
    found = scalar_value(torch.tensor(value, dtype=torch.float64))
    assert found is not None
    assert np.float64(found).tobytes() == np.float64(value).tobytes()


def test_what_is_no_scalar_has_no_value() -> None:
    assert scalar_value(torch.ones(2)) is None
    assert scalar_value(torch.tensor(1j)) is None


@pytest.mark.parametrize("name", VIEWS)
def test_reading_leaves_the_tensor_as_it_was(name: str) -> None:
    base = torch.arange(60.0).reshape(3, 4, 5)
    view = VIEWS[name](base)
    version, count = view._version, base.untyped_storage().data_ptr()
    known, _ = kind_of(view)
    detail_of(view)
    fingerprint_in_memory_order(view.data_ptr(), known.geometry)
    assert base.untyped_storage().resizable()
    assert view.untyped_storage().resizable()
    assert (view._version, base.untyped_storage().data_ptr()) == (version, count)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.integers(0, 4), min_size=0, max_size=4),
    st.lists(st.integers(0, 6), min_size=4, max_size=4),
    st.integers(0, 3),
)
def test_any_as_strided_view_is_read_right(sizes: list[int], strides: list[int], offset: int) -> None:
    base = torch.arange(128, dtype=torch.int16)
    view = base.as_strided(sizes, strides[: len(sizes)], offset)
    geometry = geometry_of(view)
    assert bytes(logical_buffer(view.data_ptr(), geometry)) == raw(view.clone())
    assert len(fingerprint_in_memory_order(view.data_ptr(), geometry)) == 16
    assert geometry.contiguous == (view.is_contiguous() or view.numel() == 0)


def test_kinds_are_interned_and_differ_by_what_matters() -> None:
    written: list[Definition] = []
    kinds = Kinds(written.append)
    first = kinds.of(torch.ones(2, 3))
    assert kinds.of(torch.zeros(2, 3)) is first
    others = [
        torch.ones(3, 2),
        torch.ones(3, 2).t(),
        torch.ones(2, 3, dtype=torch.float64),
        torch.ones(2, 3, requires_grad=True),
        torch.nn.Parameter(torch.ones(2, 3)),
        torch.ones(2, 3, device="meta"),
        torch.ones(2, 3).to_sparse(),
    ]
    ids = [kinds.of(tensor).id for tensor in others]
    assert len({first.id, *ids}) == len(others) + 1
    assert [record.id for record in written if isinstance(record, Kind)] == sorted({first.id, *ids})
    rng = kinds.rng()
    assert rng == kinds.rng()
    assert rng not in {first.id, *ids}
