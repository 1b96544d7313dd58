"""The states of random generators as words that can be kept and given back, read without advancing them (CA-9)."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

from paritrace.capture.pytorch.memory import geometry_of, logical_buffer


class Words(NamedTuple):
    """One generator's state: its words as bytes, `num_words` elements of `dtype`, and what is no word."""

    name: str
    data: object
    dtype: str
    num_words: int
    rest: dict[str, str]


def generator_states() -> Iterator[Words]:
    """Python's generator, NumPy's legacy one where NumPy is loaded, torch's on the CPU and on used CUDA devices."""
    version, words, gauss = random.getstate()
    held = np.array(words, np.uint32)
    rest = {"version": str(version), "gauss": "" if gauss is None else float.hex(gauss)}
    yield Words("python", held.tobytes(), "uint32", len(words), rest)
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        yield from _numpy(numpy_random)
    yield _torch("torch_cpu", torch.default_generator)
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        for index, generator in enumerate(torch.cuda.default_generators):
            yield _torch(f"cuda:{index}", generator)


def _numpy(numpy_random: Any) -> Iterator[Words]:
    state = numpy_random.get_state(legacy=False)
    inner = state["state"]
    if "key" not in inner:  # another bit generator was put in place of the usual one: not to be given back by words
        return
    rest = {
        "bit_generator": str(state["bit_generator"]),
        "pos": str(int(inner["pos"])),
        "has_gauss": str(int(state["has_gauss"])),
        "cached_gaussian": float(state["gauss"]).hex(),
    }
    key = np.asarray(inner["key"], np.uint32)
    yield Words("numpy", key.tobytes(), "uint32", key.size, rest)


def _torch(name: str, generator: torch.Generator) -> Words:
    state = generator.get_state()
    data = bytes(logical_buffer(state.data_ptr(), geometry_of(state)))
    return Words(name, data, "uint8", len(data), {})
