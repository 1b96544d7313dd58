"""PF-2: the whole summary of a tensor, in NumPy and with the compiled kernels, against one read of its bytes."""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.measuring import RUNS, Row, in_turn, print_table
from benchmarks.pf01_fingerprint import MIB, read
from paritrace.evidence import kernels
from paritrace.evidence.fingerprints import strong, strong_regions, xor_regions
from paritrace.evidence.summaries import elements_and_squares, summarise

NEVER, NOW = -(1 << 60), 1 << 60
SMALL_CALLS = 1000
FIRST_USE = """
import time
from paritrace.evidence import kernels
from paritrace.evidence.summaries import summarise
import numpy as np
data = np.ones(4000, dtype=np.uint8)
kernels._ledger.handled = 1 << 60
started = time.process_time()
summarise(data, dtype="float32", num_elements=1000, regions=4)
print(time.process_time() - started)
"""


def with_kernels(allowed: bool, thing: Callable[[], object]) -> Callable[[], object]:
    """The thing with kernels always, or never."""

    def run() -> object:
        kernels._ledger.handled = NOW if allowed else NEVER
        return thing()

    return run


def fingerprints_only(data: np.ndarray[tuple[int], np.dtype[np.uint8]]) -> None:
    xor_regions(data, 4)
    strong(data)


def large_rows() -> list[Row]:
    """64 MiB of each float type."""
    rows: list[Row] = []
    numbers = np.random.default_rng(1).standard_normal(16 * MIB, dtype=np.float32)
    upper = (numbers.view(np.uint32) >> 16).astype(np.uint16)
    tensors: dict[str, npt.NDArray[Any]] = {
        "float32": numbers,
        "bfloat16": np.concatenate((upper, upper)),
        "float64": numbers[: 8 * MIB].astype(np.float64),
    }
    for name, tensor in tensors.items():
        data = tensor.view(np.uint8)
        whole = partial(summarise, data, dtype=name, num_elements=tensor.size, regions=4)
        state = partial(elements_and_squares, data, name)
        cost = in_turn(
            {
                "read": partial(read, data),
                "fingerprints": partial(fingerprints_only, data),
                "regions": partial(strong_regions, data, 4),
                "kernels": with_kernels(True, whole),
                "state": with_kernels(True, state),
            }
        )
        slow = in_turn({"read": partial(read, data), "numpy": with_kernels(False, whole)}, runs=5)
        passes = {thing: found.cpu / cost["read"].cpu for thing, found in cost.items()}
        goal = ("<=", 12.0) if name == "float32" else None
        rows += [
            Row(f"{name}, 64 MiB: the whole summary, kernels", passes["kernels"], "one read", goal),
            Row(f"{name}, 64 MiB: the whole summary, NumPy", slow["numpy"].cpu / slow["read"].cpu, "one read"),
            Row(f"{name}, 64 MiB: element sum and squares, kernels", passes["state"], "one read"),
        ]
        if name == "float32":
            rows.append(Row("XOR and xxh3-64 alone", passes["fingerprints"], "one read", ("<=", 3.0)))
    return rows


def small_note() -> str:
    """4 KiB of float32, in microseconds: there is nothing to compare this with but the calls it makes."""
    values = np.random.default_rng(1).standard_normal(1024, dtype=np.float32)
    whole = partial(summarise, values.view(np.uint8), dtype="float32", num_elements=1024, regions=4)
    cost = in_turn({"numpy": with_kernels(False, whole), "kernels": with_kernels(True, whole)}, calls=SMALL_CALLS)
    return (
        f"The summary of 4 KiB of float32 takes {cost['numpy'].cpu * 1e6:.0f} us in NumPy, "
        f"{cost['kernels'].cpu * 1e6:.0f} us with kernels (aim 40 us)."
    )


def first_use_note() -> str:
    """What the first summary by kernels costs a process, with an empty and with a filled cache."""
    cold, warm = [], []
    for _ in range(RUNS - 2):
        with tempfile.TemporaryDirectory() as cache:
            cold.append(_first_use(cache))
            warm.append(_first_use(cache))
    return (
        f"The first use of the kernels costs {statistics.median(cold):.2f} s of CPU with an empty cache (once per "
        f"machine), {statistics.median(warm):.2f} s after that (once per process); they "
        f"are loaded after NumPy has handled {kernels.PAYS_OFF_AFTER >> 20} Mi numbers."
    )


def _first_use(cache: str) -> float:
    environment = os.environ | {"NUMBA_CACHE_DIR": cache}
    command = [sys.executable, "-c", FIRST_USE]
    return float(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    """Print the table of PF-2."""
    started = time.perf_counter()
    notes = (small_note(), first_use_note()) if kernels.available() else ("numba is not installed.",)
    print_table("PF-2", large_rows(), (*notes, f"Measured in {time.perf_counter() - started:.0f} s."))


if __name__ == "__main__":
    main()
