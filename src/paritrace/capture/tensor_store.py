"""Whole tensors on their way to disk: a budget, one file per content, and a disk that may refuse (CA-9). No torch."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from paritrace.errors import HostError
from paritrace.evidence.dumps import TENSOR_KEY, Kept
from paritrace.evidence.gaps import CaptureGap, CountedGap, Gap
from paritrace.evidence.tensor_files import header_of
from paritrace.files import Files
from paritrace.runs.session import OpenSession
from paritrace.runs.tensor_paths import tensor_path

MAX_FILES = 20_000  # of one session: each has a row in run.json, and costs a forcing to disk


class TensorStore:
    """Keeps tensors of one session. Used by the workload's thread: what it was given is on disk when it returns.

    `kept` counts tensors that are stored, once for each time they were given; `num_bytes` is what this session wrote.
    `unmet` are the options that named no call so far: what was asked for and never came is said at the end.
    """

    def __init__(
        self, session: OpenSession, *, files: Files, max_bytes: int, count: Callable[[CountedGap, str], object]
    ) -> None:
        self._session = session
        self._files = files
        self._max_bytes = max_bytes
        self._count = count
        self._stored: set[str] = set()
        self.kept = 0
        self.unmet: set[str] = set()
        self.num_bytes = 0
        self.failure: HostError | None = None

    def keep(self, data: Any, *, dtype: str, shape: tuple[int, ...], itemsize: int, name: str) -> Kept:
        """The digest under which a tensor is stored, or why it is not; `name` is what a gap calls it.

        `data` is any contiguous buffer; it is copied before anything is written, since it may lie in live memory.
        """
        header = header_of(TENSOR_KEY, dtype=dtype, shape=shape, itemsize=itemsize)
        own = bytes(data)
        state = hashlib.sha256(header)
        state.update(own)
        digest = state.hexdigest()
        refused = None if digest in self._stored else self._store(digest, header, own)
        if refused is None:
            self.kept += 1
            return digest
        over = refused.gap is CaptureGap.OVER_BUDGET
        self._count(CountedGap.OVER_BUDGET if over else CountedGap.DISK_FULL, f"tensor of {name}: {refused.detail}")
        return refused

    def _store(self, digest: str, header: bytes, data: bytes) -> Gap[CaptureGap] | None:
        """Write a content that this session has not stored yet, unless another rank has."""
        if self.failure is not None:
            return Gap(CaptureGap.CAPTURE_ERROR, self.failure.code)
        size = len(header) + len(data)
        if self.num_bytes + size > self._max_bytes:
            return Gap(CaptureGap.OVER_BUDGET, f"{size} bytes beyond --dump-bytes")
        if len(self._stored) >= MAX_FILES:
            return Gap(CaptureGap.OVER_BUDGET, f"more than {MAX_FILES} tensors")
        try:
            self._write(digest, header, data)
        except HostError as error:
            self.failure = error
            return Gap(CaptureGap.CAPTURE_ERROR, error.code)
        self._stored.add(digest)
        self._session.register_tensor(digest, size)
        return None

    def _write(self, digest: str, header: bytes, data: bytes) -> None:
        path = tensor_path(self._session.run_dir, digest)
        if self._files.exists(path) and self._files.size(path) == len(header) + len(data):
            return
        with self._files.replacing(path) as replacement:
            replacement.write(header)
            replacement.write(data)
        self.num_bytes += len(header) + len(data)
