"""Reading tensors that a run keeps whole: of which slots and module calls, and their bytes by digest (CA-9)."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from paritrace.errors import EvidenceError
from paritrace.evidence.digests import sha256_of
from paritrace.evidence.dumps import (
    TENSOR_KEY,
    TENSORS_FOLDER,
    Dumped,
    Golden,
    GoldenGradient,
    KeptTensor,
)
from paritrace.evidence.tensor_files import LENGTH_BYTES, Stored, bad, header_length, stored_in
from paritrace.files import LOCAL, Files
from paritrace.runs.reading import Run
from paritrace.runs.tensor_paths import no_tensor, tensor_path
from paritrace.runs.views import SessionView

Bytes = npt.NDArray[np.uint8]
_SAME_IN_NUMPY = frozenset(
    {"bool", "float16", "float32", "float64", "complex64", "complex128"}
    | {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
)
_WORDS: dict[int, type[np.unsignedinteger[Any]]] = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


class GoldenCall(Struct, frozen=True):
    """A golden call of one session, with the gradients that reached its outputs, by the path of the output."""

    session_id: str
    rank: int
    golden: Golden
    gradients: dict[str, KeptTensor]


class WholeTensor:
    """A stored tensor: dtype by torch name, shape, and its bytes in logical order, mapped from the file."""

    def __init__(self, stored: Stored, data: Bytes) -> None:
        self.dtype = stored.dtype
        self.shape = stored.shape
        self.data = data

    @property
    def array(self) -> npt.NDArray[Any]:
        """The elements as NumPy has them; of a dtype that NumPy lacks (bfloat16, float8) its words as uint16 or uint8.

        Read-only, and of the tensor's shape.
        """
        if self.dtype in _SAME_IN_NUMPY:
            return self.data.view(np.dtype(self.dtype)).reshape(self.shape)
        num_elements = int(np.prod(self.shape, dtype=np.int64))
        itemsize = self.data.size // num_elements if num_elements else 1
        word = _WORDS.get(itemsize)
        return self.data.view(word).reshape(self.shape) if word else self.data.reshape((*self.shape, itemsize))


def holds_tensors(run: Run, *, files: Files = LOCAL) -> bool:
    """Whether the run keeps any tensor whole, without reading a journal."""
    return files.exists(run.folder / TENSORS_FOLDER)


def dumped(run: Run, session: SessionView) -> Iterator[Dumped]:
    """The kept slots of one session, in the order of the journal; of a slot's lines the last one counts."""
    for record in run.records(session.session_id):
        if isinstance(record, Dumped):
            yield record


def dumped_slots(run: Run, session: SessionView) -> Mapping[tuple[int, str, str], Dumped]:
    """The kept slots of one session by (call id, side, slot name)."""
    return {(record.call, record.side, record.name): record for record in dumped(run, session)}


def goldens(run: Run, *, module: str | None = None) -> tuple[GoldenCall, ...]:
    """The golden calls of all ranks, in order; of one module where it is named."""
    found: list[GoldenCall] = []
    for session in run.sessions:
        kept: list[Golden] = []
        gradients: dict[int, dict[str, KeptTensor]] = defaultdict(dict)
        for record in run.records(session.session_id):
            if isinstance(record, Golden) and module in (None, record.module):
                kept.append(record)
            elif isinstance(record, GoldenGradient):
                gradients[record.golden][record.output] = record.tensor
        found += [GoldenCall(session.session_id, session.rank, golden, gradients[golden.id]) for golden in kept]
    return tuple(found)


def open_tensor(run: Run, sha256: str, *, files: Files = LOCAL) -> WholeTensor:
    """The tensor of a digest; the whole file is hashed before anything of it is used.

    Raises:
        EvidenceError: Refused: `no_tensor`, `tensor_changed` when the file has another digest, `bad_tensor_file`.
        HostError: Refused: the file cannot be read.
    """
    path = tensor_path(run.folder, sha256)
    if not files.exists(path):
        raise no_tensor(run.folder, sha256)
    if sha256_of(files.iter_chunks(path)).sha256 != sha256:
        raise EvidenceError(
            f"{path} has other bytes than its name says",
            code="tensor_changed",
            fix="restore the file from a copy; `paritrace runs verify RUN` lists what changed",
        )
    return open_key(path, TENSOR_KEY, files=files)


def open_key(path: Path, key: str, *, files: Files = LOCAL) -> WholeTensor:
    """One tensor of any safetensors file, mapped; nothing is hashed.

    Raises:
        EvidenceError: Refused: `bad_tensor_file`, `no_tensor`.
        HostError: Refused: the file cannot be read.
    """
    num_bytes = files.size(path)
    length = header_length(b"".join(files.iter_chunks(path, length=LENGTH_BYTES)), name=str(path))
    text = b"".join(files.iter_chunks(path, length=LENGTH_BYTES + length))[LENGTH_BYTES:]
    if len(text) != length:
        raise bad(str(path), "it ends inside its header")
    stored = stored_in(text, num_bytes=num_bytes, name=str(path)).get(key)
    if stored is None:
        raise EvidenceError(
            f"{path} holds no tensor {key!r}", code="no_tensor", fix="name a key that the file has, as FILE:KEY"
        )
    if stored.num_bytes == 0:
        return WholeTensor(stored, np.empty(0, np.uint8))
    mapped = np.memmap(path, np.uint8, "r", stored.begin, (stored.num_bytes,))
    return WholeTensor(stored, mapped.view(np.ndarray))
