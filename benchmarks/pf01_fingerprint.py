"""PF-1: the XOR fingerprint against the time to read the same bytes (`np.sum` of a uint64 view)."""

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from benchmarks.measuring import Row, in_turn, print_table
from paritrace.evidence.fingerprints import strong, xor_regions

MIB = 1 << 20
SMALL_CALLS = 2000


def read(data: npt.NDArray[np.uint8]) -> object:
    """One pass over memory."""
    return np.sum(data[: data.size // 8 * 8].view(np.uint64))


def large_rows() -> list[Row]:
    """64 MiB: the bytes are those of float32 or of bfloat16, which no scheme can tell apart."""
    data = np.random.default_rng(1).integers(0, 256, 64 * MIB + 3, dtype=np.uint8)
    even = data[: 64 * MIB]
    things: dict[str, Callable[[], object]] = {
        "read": partial(read, even),
        **{f"R = {regions}": partial(xor_regions, even, regions) for regions in (1, 4, 64)},
        "odd": partial(xor_regions, data, 4),
        "xxh3-64": partial(strong, even),
    }
    cost = in_turn(things)
    speed = {name: cost["read"].cpu / found.cpu for name, found in cost.items()}
    return [
        *(Row(f"XOR, 64 MiB, R = {n}", speed[f"R = {n}"], "speed of a read", (">=", 0.9)) for n in (1, 4, 64)),
        Row("XOR, 64 MiB + 3 bytes, R = 4", speed["odd"], "speed of a read", (">=", 0.75)),
        Row("XOR, R = 64", speed["R = 64"] / speed["R = 1"], "speed of R = 1", (">=", 0.9)),
        Row("xxh3-64, 64 MiB", speed["xxh3-64"], "speed of a read"),
    ]


def small_rows() -> list[Row]:
    """4 KiB: the cost of the calls."""
    data = np.random.default_rng(1).integers(0, 256, 4096, dtype=np.uint8)
    things: dict[str, Callable[[], object]] = {
        "read": partial(read, data),
        "xor": partial(xor_regions, data, 4),
        "strong": partial(strong, data),
    }
    cost = in_turn(things, calls=SMALL_CALLS)
    return [
        Row("XOR, 4 KiB, R = 4", cost["xor"].cpu / cost["read"].cpu, "time of the `np.sum` call", ("<=", 3.0)),
        Row("xxh3-64, 4 KiB", cost["strong"].cpu / cost["read"].cpu, "time of the `np.sum` call"),
    ]


def main() -> None:
    """Print the table of PF-1."""
    print_table("PF-1", [*large_rows(), *small_rows()])


if __name__ == "__main__":
    main()
