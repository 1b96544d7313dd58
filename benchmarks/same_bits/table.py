"""`python -m benchmarks.same_bits.table`: every training bare and captured at each level, all bits compared (CA-14)."""

from __future__ import annotations

import hashlib
import importlib
import random
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

import numpy as np
import torch
from torch.distributed.tensor import DTensor

import paritrace
from benchmarks.same_bits import workloads
from benchmarks.same_bits.workloads import WORKLOADS, Workload

RESULTS = Path(__file__).parents[1] / "same_bits.md"
LEVELS: dict[str, tuple[str, ...]] = {
    "digest": ("digest",),
    "module": ("module",),
    "op": ("op",),
    "module + op": ("module", "op"),
}

REWRITTEN = "callsite"  # a column of its own: the training is imported anew, and so rewritten, inside the capture


def bits_of(workload: Workload) -> str:
    """SHA-256 over every tensor that a seeded run yields and the state of all generators at its end.

    Of a distributed tensor it is this rank's part.
    """
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    torch._dynamo.reset()
    digest = hashlib.sha256()
    for tensor in workload():
        part = tensor.to_local() if isinstance(tensor, DTensor) else tensor
        dense = part.to_dense() if part.layout is not torch.strided else part
        digest.update(repr((dense.dtype, tuple(dense.shape))).encode())
        digest.update(dense.detach().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    digest.update(bytes(torch.get_rng_state().tolist()))
    digest.update(repr(random.getstate()).encode())
    digest.update(np.random.get_state()[1].tobytes())  # type: ignore[index]
    return digest.hexdigest()


def captured_bits(workload: Workload, levels: tuple[str, ...], run: Path) -> str:
    """The same under capture at these levels, over all steps."""
    with paritrace.trace(run, level=levels, steps=(0, 1000), diff=False):
        return bits_of(workload)


def rewritten_bits(attribute: str, name: str, run: Path, *modules: ModuleType) -> str:
    """The same of a training in a table of the first module, all modules imported anew with their calls observed.

    A run that recorded no call proves nothing, and has no bits.
    """
    plain = {module.__name__: sys.modules.pop(module.__name__) for module in modules}
    try:
        with paritrace.trace(run, level=REWRITTEN, steps=(0, 1000), diff=False):
            trainings: dict[str, Workload] = vars(importlib.import_module(modules[0].__name__))[attribute]
            bits = bits_of(trainings[name])
    finally:
        sys.modules.update(plain)
    journals = run.rglob("calls.jsonl")
    return bits if any(b'\n["c"' in journal.read_bytes() for journal in journals) else ""


def row(name: str, place: Path) -> dict[str, bool]:
    """Whether the bits agree, for each level and for a second bare run: one that differs from itself proves nothing."""
    workload = WORKLOADS[name]
    bare = bits_of(workload)
    agree = {"bare again": bits_of(workload) == bare}
    for level, levels in LEVELS.items():
        agree[level] = captured_bits(workload, levels, place / level.replace(" ", "")) == bare
    agree[REWRITTEN] = rewritten_bits("WORKLOADS", name, place / REWRITTEN, workloads) == bare
    return agree


def table(names: Iterable[str]) -> tuple[list[str], bool]:
    """Lines of a Markdown table, and whether every cell agrees."""
    columns = ("bare again", *LEVELS, REWRITTEN)
    lines = [f"| training | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}"]
    print("\n".join(lines), flush=True)
    good = True
    for name in names:
        with tempfile.TemporaryDirectory() as place:
            cells = row(name, Path(place))
        good = good and all(cells.values())
        lines.append(
            f"| {name} | " + " | ".join("equal" if cells[column] else "**DIFFERS**" for column in columns) + " |"
        )
        print(lines[-1], flush=True)
    return lines, good


def main() -> int:
    torch.set_num_threads(1)
    chosen = sys.argv[1:] or list(WORKLOADS)
    lines, good = table(chosen)
    if not sys.argv[1:]:
        where = f"On the CPU with torch {torch.__version__}; `python -m benchmarks.same_bits.table` makes this table."
        RESULTS.write_text("\n".join([where, "", *lines, ""]), encoding="utf-8")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
