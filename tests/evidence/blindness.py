"""Real changes of a tensor, and what each fingerprint makes of them: the table of docs/explanation/fingerprints.md."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from paritrace.evidence.fingerprints import Scheme, fingerprint
from paritrace.evidence.summaries import SlotSummary, summarise

Values = npt.NDArray[Any]
Change = tuple[str, Values, Values]
COLUMNS: dict[str, Callable[[Values, Values], str]] = {}

SEES, MISSES = "sees", "-"


def changes() -> list[Change]:
    """Name, tensor, changed tensor. The tensor is 32 tokens of 4 heads of 64, standard normal float32."""
    random = np.random.default_rng(2026)
    x = random.standard_normal((32, 256), dtype=np.float32)
    heads = x.reshape(32, 4, 64)
    sample = random.standard_normal((4, 256), dtype=np.float32)
    other_sample = _with(sample, (1, 7), sample[1, 7] * np.float32(1.5))
    square = x[:, :32]
    halves = _bfloat16(random.standard_normal((16, 64), dtype=np.float32))
    return [
        ("one element, 1 ulp", x, _with(x, (3, 5), np.nextafter(x[3, 5], np.float32(9)))),
        ("one element, + 0.001", x, _with(x, (3, 5), x[3, 5] + np.float32(1e-3))),
        ("everything doubled", x, x * np.float32(2)),
        ("signs of two neighbours", x, x * np.where(np.arange(256) // 2 == 20, -1, 1).astype(np.float32)),
        ("all signs", x, -x),
        ("two rows swapped", x, x[[1, 0, *range(2, 32)]]),
        ("order of heads reversed", x, heads[:, ::-1].reshape(32, 256)),
        ("rotary halves swapped", x, heads.reshape(32, 4, 2, 32)[:, :, ::-1].reshape(32, 256)),
        ("sequence shifted by one", x, np.roll(x, 1, axis=0)),
        ("square transposed", square, square.T),
        ("bfloat16 halves to interleaved", halves, halves.reshape(16, 2, 32).transpose(0, 2, 1).reshape(16, 64)),
        ("mask of zeros to ones", np.zeros((32, 256), np.float32), np.ones((32, 256), np.float32)),
        ("constant 0.5 to 0.3", np.full((32, 256), 0.5, np.float32), np.full((32, 256), 0.3, np.float32)),
        ("one value wrong in both replicas", np.vstack((sample, sample)), np.vstack((other_sample, other_sample))),
        ("the other of two shards loaded twice", np.vstack((sample, sample)), np.vstack((x[:4], x[:4]))),
        ("all zeros negative", np.zeros((32, 256), np.float32), np.full((32, 256), -0.0, np.float32)),
    ]


def _with(values: Values, place: tuple[int, int], value: np.float32) -> Values:
    changed = values.copy()
    changed[place] = value
    return changed


def _bfloat16(values: Values) -> Values:
    """The upper halves of float32: bfloat16 as bits."""
    bits: Values = (values.view(np.uint32) >> 16).astype(np.uint16)
    return bits


def judge_scheme(scheme: Scheme, regions: int) -> Callable[[Values, Values], str]:
    def judge(before: Values, after: Values) -> str:
        values = [fingerprint(array, scheme, regions).values for array in (before, after)]
        return SEES if values[0] != values[1] else MISSES

    return judge


def judge_moments(before: Values, after: Values) -> str:
    one, other = (_summary(array).moments for array in (before, after))
    return SEES if one != other else MISSES


def judge_samples(before: Values, after: Values) -> str:
    """How many of the 64 sampled elements differ."""
    one, other = (bytes.fromhex(_summary(array).samples) for array in (before, after))
    width = before.dtype.itemsize
    differing = sum(one[at : at + width] != other[at : at + width] for at in range(0, len(one), width))
    return f"{differing} of 64" if differing else MISSES


def _summary(array: Values) -> SlotSummary:
    dtype = "float32" if array.dtype == np.float32 else "bfloat16"
    return summarise(array.tobytes(), dtype=dtype, num_elements=array.size, regions=4)


COLUMNS |= {
    "XOR, 1 region": judge_scheme(Scheme.FLAT_U32_LE_V1, 1),
    "XOR, 4": judge_scheme(Scheme.FLAT_U32_LE_V1, 4),
    "XOR, 64": judge_scheme(Scheme.FLAT_U32_LE_V1, 64),
    "elements-u64": judge_scheme(Scheme.ELEMENTS_U64, 1),
    "xxh3-64": judge_scheme(Scheme.XXH3_64, 1),
    "mix-u32-le-v1": judge_scheme(Scheme.MIX_U32_LE_V1, 1),
    "indexed-u64": judge_scheme(Scheme.INDEXED_U64, 1),
    "moments": judge_moments,
    "samples": judge_samples,
}


def verdicts() -> dict[str, dict[str, str]]:
    """Change -> column -> verdict."""
    return {
        name: {column: judge(before, after) for column, judge in COLUMNS.items()} for name, before, after in changes()
    }


def table() -> str:
    """The table in Markdown."""
    lines = ["| change | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    lines += [f"| {name} | " + " | ".join(found.values()) + " |" for name, found in verdicts().items()]
    rows = verdicts().values()
    missed = [str(sum(found[column] == MISSES for found in rows)) for column in COLUMNS]
    lines.append(f"| **missed, of {len(verdicts())}** | " + " | ".join(missed) + " |")
    return "\n".join(lines)
