"""Reading live tensors by address (CA-33): never through `.numpy()`, sharing or pickling, and without keeping them."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import xxhash

from paritrace.capture.pytorch.internals import is_functorch_wrapped, no_python_dispatch
from paritrace.evidence.gaps import CaptureGap, Gap

Buffer = Any  # a ctypes char array or a contiguous uint8 array: both are read through the buffer protocol
_PLAIN = frozenset({torch.Tensor, torch.nn.Parameter, torch.nn.Buffer})
RELEASED = Gap(CaptureGap.NO_DATA, "storage holds no bytes")
MAX_REPEATED_BYTES = (
    1 << 30
)  # an expanded view is written out to be summarised: beyond 1 GiB that could end the workload
_EMPTY = np.empty(0, np.uint8)
_WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64, 16: np.complex128}


@dataclass(frozen=True, slots=True)
class Geometry:
    """How the elements of one kind of tensor lie in memory.

    `sizes` and `strides` (in elements) are those of the dims that hold memory: dims of size 1 and of stride 0 left out,
    sorted by falling stride. `dense` says that they cover `num_bytes` without a hole; `contiguous` that memory order is
    also logical order. `gap` is why there are no bytes to read.
    """

    dtype: str
    itemsize: int
    num_elements: int
    shape: tuple[int, ...]
    logical_strides: tuple[int, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    dense: bool
    contiguous: bool
    num_bytes: int
    span: int
    gap: Gap[CaptureGap] | None

    @property
    def signature(self) -> tuple[object, ...]:
        """Equal for two views of one address that read the same bytes in the same memory order."""
        return (self.num_bytes,) if self.dense else (self.itemsize, self.sizes, self.strides)


def dtype_name(dtype: torch.dtype) -> str:
    """`float32` for `torch.float32`."""
    return str(dtype).partition(".")[2]


def geometry_of(tensor: torch.Tensor) -> Geometry:
    """Geometry of a strided tensor, or one with a gap for what has no strided bytes on the CPU. Reads no data."""
    gap = _unreadable(tensor)
    shape, strides = _shape(tensor), () if gap is not None else tuple(tensor.stride())
    itemsize = tensor.dtype.itemsize
    count = 1
    for size in shape:
        count *= size
    held = sorted(
        ((stride, size) for stride, size in zip(strides, shape, strict=False) if size > 1 and stride > 0), reverse=True
    )
    sizes, steps = tuple(size for _, size in held), tuple(stride for stride, _ in held)
    elements = 0 if count == 0 else _product(sizes)
    span = 0 if count == 0 else (sum((n - 1) * s for n, s in zip(sizes, steps, strict=True)) + 1) * itemsize
    if gap is None and count * itemsize > max(span, MAX_REPEATED_BYTES):
        gap = Gap(CaptureGap.OVER_BUDGET, "elements repeated in memory")
    return Geometry(
        dtype=dtype_name(tensor.dtype),
        itemsize=itemsize,
        num_elements=count,
        shape=shape,
        logical_strides=strides,
        sizes=sizes,
        strides=steps,
        dense=_is_dense(sizes, steps),
        contiguous=gap is None and _is_contiguous(shape, strides),
        num_bytes=elements * itemsize,
        span=span,
        gap=gap,
    )


def holds_bytes(tensor: torch.Tensor, geometry: Geometry, address: int) -> bool:
    """Whether the tensor's storage holds its elements now: a storage may be freed (FSDP2 resizes it to nothing between
    uses), and autograd's zero tensors have none at all. Reading such an address would end the workload."""
    if geometry.num_bytes == 0:
        return True
    end = tensor.storage_offset() * geometry.itemsize + geometry.span
    return address != 0 and end <= tensor.untyped_storage().nbytes()


def memory_buffer(address: int, geometry: Geometry) -> Buffer:
    """The bytes in memory order; no copy where they are dense."""
    if geometry.num_bytes == 0:
        return _EMPTY
    raw = (ctypes.c_char * geometry.span).from_address(address)
    if geometry.dense:
        return raw
    return _gather(raw, geometry.sizes, geometry.strides, geometry.itemsize)


def logical_buffer(address: int, geometry: Geometry) -> Buffer:
    """The bytes in logical contiguous order; no copy where the tensor is contiguous."""
    if geometry.num_elements == 0:
        return _EMPTY
    raw = (ctypes.c_char * geometry.span).from_address(address)
    if geometry.contiguous:
        return raw
    return _gather(raw, geometry.shape, geometry.logical_strides, geometry.itemsize)


def fingerprint_in_memory_order(address: int, geometry: Geometry) -> str:
    """`xxh3-64` of the bytes in memory order, 16 hex digits."""
    return xxhash.xxh3_64_hexdigest(memory_buffer(address, geometry))


def scalar_value(tensor: torch.Tensor) -> float | None:
    """The value of a real one-element CPU tensor, read by address; None for anything else."""
    geometry = geometry_of(tensor)
    if geometry.gap is not None or geometry.num_elements != 1 or tensor.dtype.is_complex:
        return None
    if not holds_bytes(tensor, geometry, tensor.data_ptr()):
        return None
    data = bytes(logical_buffer(tensor.data_ptr(), geometry))
    if geometry.dtype == "bfloat16":
        return float(np.frombuffer(b"\0\0" + data, np.float32)[0])
    if geometry.dtype in ("float16", "float32", "float64") or geometry.dtype.startswith(("int", "uint", "bool")):
        return float(np.frombuffer(data, np.dtype(geometry.dtype))[0])
    return None


def is_plain(tensor: torch.Tensor) -> bool:
    """Whether the tensor's bytes are its own: no Python-dispatched wrapper such as FakeTensor or DTensor."""
    cls = type(tensor)
    return cls in _PLAIN or cls.__torch_dispatch__ is no_python_dispatch


def _unreadable(tensor: torch.Tensor) -> Gap[CaptureGap] | None:
    if not is_plain(tensor):
        return Gap(CaptureGap.NO_DATA, type(tensor).__name__)
    if tensor.is_nested or tensor.layout is not torch.strided:
        return Gap(
            CaptureGap.UNSUPPORTED_LAYOUT, "nested" if tensor.is_nested else str(tensor.layout).partition(".")[2]
        )
    if is_functorch_wrapped(tensor):
        return Gap(CaptureGap.NO_DATA, "functorch")
    if tensor.device.type == "meta":
        return Gap(CaptureGap.NO_DATA, "meta")
    if tensor.device.type != "cpu":
        return Gap(CaptureGap.UNSUPPORTED_DEVICE, tensor.device.type)
    if tensor.is_conj() or tensor.is_neg():
        return Gap(CaptureGap.UNSUPPORTED_LAYOUT, "lazily conjugated or negated view")
    return None


def _shape(tensor: torch.Tensor) -> tuple[int, ...]:
    if tensor.is_nested:  # the other sizes are not numbers
        return (int(tensor.size(0)),)
    return tuple(int(size) for size in tensor.shape)


def _is_dense(sizes: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    expected = 1
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        if stride != expected:
            return False
        expected *= size
    return True


def _is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    if 0 in shape:
        return True
    expected = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def _product(sizes: tuple[int, ...]) -> int:
    product = 1
    for size in sizes:
        product *= size
    return product


def _gather(raw: Any, sizes: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> npt.NDArray[np.uint8]:
    view: npt.NDArray[Any] = np.ndarray(
        sizes, _WORDS[itemsize], buffer=raw, strides=[stride * itemsize for stride in strides]
    )
    return np.ascontiguousarray(view).reshape(-1).view(np.uint8)
