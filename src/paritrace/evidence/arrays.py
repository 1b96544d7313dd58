"""The bytes of an array of any library in logical order, read without changing the array (CA-17, CA-33)."""

import ctypes
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from paritrace.errors import RequestError

Bytes = npt.NDArray[np.uint8]
ReadBuffer = bytes | bytearray | memoryview | ctypes.Array[Any] | npt.NDArray[Any]

_READABLE_DEVICES = ("cpu", "cuda")
_PLAIN_DISPATCH = "_disabled_torch_dispatch_impl"  # of tensor classes that no Python code dispatches for


def as_bytes(buffer: ReadBuffer) -> Bytes:
    """The bytes of any contiguous buffer, borrowed; `buffer` may be empty."""
    return np.frombuffer(cast(memoryview, buffer), dtype=np.uint8)


def logical_bytes(array: object) -> tuple[Bytes, int]:
    """The little-endian bytes of an array's elements in row-major order, and the size of one element in bytes.

    The result borrows the array's memory where it is contiguous. Raises RequestError (Refused) where there are no
    plain bytes: another device, a sparse layout, Python objects.
    """
    foreign: Any = array
    if hasattr(foreign, "data_ptr") and hasattr(foreign, "element_size"):
        return _torch_bytes(foreign)
    values = _as_numpy(foreign)
    if not _is_number(values.dtype):
        raise _refused(f"an array of dtype {values.dtype} does not hold plain numbers")
    little = values.astype(values.dtype.newbyteorder("<"), copy=False)
    return np.ascontiguousarray(little).reshape(-1).view(np.uint8), values.dtype.itemsize


def _is_number(dtype: np.dtype[Any]) -> bool:
    """Not strings, records, objects, or long doubles, whose padding is no part of the number; bfloat16 is kind V."""
    return (dtype.kind in "biufcV" and dtype.names is None and dtype.itemsize in (1, 2, 4, 8)) or dtype == "complex128"


def _as_numpy(foreign: Any) -> npt.NDArray[Any]:
    try:
        if isinstance(foreign, (bytes, bytearray)):
            return np.frombuffer(foreign, dtype=np.uint8)
        return _from_dlpack(foreign) if hasattr(foreign, "__dlpack__") else np.asarray(foreign)
    except (TypeError, ValueError, BufferError) as error:
        raise _refused(f"a {type(foreign).__name__} gives no plain bytes: {error}") from error


def _from_dlpack(foreign: Any) -> npt.NDArray[Any]:
    """Through DLPack; bfloat16, float8, other byte orders and read-only arrays cannot travel so, then as an array."""
    try:
        return np.from_dlpack(foreign)
    except (BufferError, RuntimeError, TypeError):
        return np.asarray(foreign)


def _torch_bytes(tensor: Any) -> tuple[Bytes, int]:
    """By address: `.numpy()` would make the tensor's storage non-resizable for good (CA-33)."""
    if tensor.is_nested or str(tensor.layout) != "torch.strided":
        raise _refused("a nested tensor or one of a sparse layout has no single run of bytes")
    if tensor.device.type not in _READABLE_DEVICES:
        raise _refused(f"tensors on device {tensor.device.type!r} cannot be read")
    kind = cast(Any, type(tensor))
    if kind.__torch_dispatch__.__name__ != _PLAIN_DISPATCH:
        raise _refused(f"a {kind.__name__} stands for other tensors and holds no bytes of its own")
    if tensor.numel() == 0:
        return np.zeros(0, dtype=np.uint8), tensor.element_size()
    _require_memory(tensor)
    dense = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous()
    view = (ctypes.c_uint8 * (dense.numel() * dense.element_size())).from_address(dense.data_ptr())
    view.owner = dense  # the buffer lives as long as the bytes are used
    return np.frombuffer(view, dtype=np.uint8), dense.element_size()


def _require_memory(tensor: Any) -> None:
    """A storage that was released, or a tensor inside a function transform, has no address to read from."""
    try:
        address = int(tensor.data_ptr())
    except RuntimeError as error:
        raise _refused(f"this tensor gives no address: {error}") from error
    if address == 0:
        raise _refused("the storage of this tensor holds no bytes")


def _refused(message: str) -> RequestError:
    return RequestError(
        message,
        code="fingerprint_array",
        fix="pass a dense array of numbers on the CPU",
    )
