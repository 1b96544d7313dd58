"""The safetensors framing against the format's own library, and against hostile headers (CA-9, ADR 0012)."""

import json
from typing import Any, cast

import numpy as np
import pytest
import safetensors
import torch
from safetensors.torch import load, save

from paritrace.errors import EvidenceError
from paritrace.evidence.tensor_files import LENGTH_BYTES, NAMES, Stored, header_length, header_of, stored_in

SHAPES = [(), (0,), (3,), (2, 0, 4), (2, 3)]


@pytest.mark.parametrize("dtype", sorted(NAMES))
@pytest.mark.parametrize("shape", SHAPES)
def test_the_library_reads_what_we_write(dtype: str, shape: tuple[int, ...]) -> None:
    itemsize = getattr(torch, dtype).itemsize
    data = bytes(np.random.default_rng(1).integers(0, 2, int(np.prod(shape)) * itemsize, np.uint8))
    header = header_of("tensor", dtype=dtype, shape=shape, itemsize=itemsize)

    ((key, read),) = cast(Any, safetensors).deserialize(header + data)

    assert (key, read["dtype"], tuple(read["shape"])) == ("tensor", NAMES[dtype], shape)
    assert bytes(read["data"]) == data
    assert len(header) % 8 == 0


def test_we_read_what_the_library_writes() -> None:
    tensors = {"a": torch.arange(6, dtype=torch.bfloat16).reshape(2, 3), "b": torch.zeros(0), "é": torch.ones(1) > 0}
    file = save(tensors, metadata={"who": "somebody"})

    found = _stored(file)

    assert {key: (stored.dtype, stored.shape) for key, stored in found.items()} == {
        "a": ("bfloat16", (2, 3)),
        "b": ("float32", (0,)),
        "é": ("bool", (1,)),
    }
    at = found["a"]
    words = np.frombuffer(file[at.begin : at.begin + at.num_bytes], np.uint16)
    assert words.tolist() == [0x0000, 0x3F80, 0x4000, 0x4040, 0x4080, 0x40A0]


def test_a_dtype_without_a_name_keeps_its_own() -> None:
    header = header_of("tensor", dtype="complex128", shape=(2, 1), itemsize=16)
    file = header + bytes(32)

    stored = _stored(file)["tensor"]

    assert (stored.dtype, stored.shape, stored.num_bytes) == ("complex128", (2, 1), 32)
    read = load(file)["tensor"]
    assert (read.dtype, tuple(read.shape)) == (torch.uint8, (2, 1, 16))


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F32", "shape": [2], "data_offsets": [0, 80]},
        {"dtype": "F32", "shape": [2], "data_offsets": [8, 0]},
        {"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]},
        {"dtype": "F99", "shape": [2], "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": [True, 2], "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": [1 << 62, 1 << 62], "data_offsets": [0, 8]},
        {"dtype": "F32", "data_offsets": [0, 8]},
        [1],
        None,
    ],
)
def test_a_header_that_lies_is_refused(entry: object) -> None:
    text = json.dumps({"x": entry}).encode()
    with pytest.raises(EvidenceError) as refused:
        stored_in(text, num_bytes=LENGTH_BYTES + len(text) + 8, name="x.safetensors")
    assert refused.value.code == "bad_tensor_file"


@pytest.mark.parametrize("text", [b"", b"[]", b"{", b"\xff", b"[" * 100_000, b'{"__metadata__": 3}'])
def test_what_is_no_header_is_refused(text: bytes) -> None:
    with pytest.raises(EvidenceError):
        stored_in(text, num_bytes=len(text) + 8, name="x")


@pytest.mark.parametrize("prefix", [b"", b"1234567", b"\xff" * 8])
def test_a_length_that_is_none_is_refused(prefix: bytes) -> None:
    with pytest.raises(EvidenceError):
        header_length(prefix, name="x")


def _stored(file: bytes) -> dict[str, Stored]:
    length = header_length(file[:LENGTH_BYTES], name="x")
    return stored_in(file[LENGTH_BYTES : LENGTH_BYTES + length], num_bytes=len(file), name="x")
