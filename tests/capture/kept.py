"""Captures a function in this process with tensors kept whole, and reads what was kept (CA-9)."""

import ctypes
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import torch

import paritrace
from paritrace.evidence.calls import Call, Function, GapMark, Name
from paritrace.evidence.dumps import Dumped
from paritrace.evidence.journal import Loss
from paritrace.runs.reading import open_run
from paritrace.runs.tensors import GoldenCall, WholeTensor, goldens, open_tensor


@dataclass
class Kept:
    """What one session kept, and its calls by id."""

    path: Path
    calls: dict[int, Call]
    functions: dict[int, str]
    names: dict[int, str]
    gaps: list[GapMark]
    dumped: list[Dumped]
    goldens: tuple[GoldenCall, ...]
    files: int

    def function(self, line: Dumped) -> str:
        return self.functions[self.calls[line.call].function]

    def tensors(self) -> dict[object, WholeTensor]:
        """All of them by digest."""
        with open_run(self.path) as run:
            return {line.tensor: open_tensor(run, line.tensor) for line in self.dumped if isinstance(line.tensor, str)}

    def tensor(self, sha256: object) -> WholeTensor:
        assert isinstance(sha256, str), sha256
        with open_run(self.path) as run:
            return open_tensor(run, sha256)


def keep(
    run: Path,
    work: Callable[[], object],
    *,
    level: str | Iterable[str] = "module",
    dump: Iterable[str] = (),
    golden: Iterable[str] = (),
    dump_bytes: int | str = "64MiB",
) -> Kept:
    with paritrace.trace(run, level=level, dump=dump, golden=golden, dump_bytes=dump_bytes, diff=False, steps=(0, 1)):
        work()
    return read(run)


def read(path: Path) -> Kept:
    with open_run(path) as run:
        (session,) = run.sessions
        found = list(run.records(session.session_id))
        kept = goldens(run)
    assert not [item for item in found if isinstance(item, Loss)]
    folder = path / "tensors"
    return Kept(
        path,
        {item.id: item for item in found if isinstance(item, Call)},
        {item.id: item.name for item in found if isinstance(item, Function)},
        {item.id: item.text for item in found if isinstance(item, Name)},
        [item for item in found if isinstance(item, GapMark)],
        [item for item in found if isinstance(item, Dumped)],
        kept,
        len(list(folder.iterdir())) if folder.is_dir() else 0,
    )


def bytes_of(tensor: torch.Tensor) -> bytes:
    """The bytes of a tensor in logical order, taken by torch and by address."""
    dense = tensor.detach().contiguous()
    return ctypes.string_at(dense.data_ptr(), dense.numel() * dense.element_size()) if dense.numel() else b""
