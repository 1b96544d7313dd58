"""Random generators: digests of their states, read without advancing them."""

from __future__ import annotations

import random
import sys
from typing import Any

import torch
import xxhash

from paritrace.capture.definitions import Definitions
from paritrace.capture.pytorch.kinds import Kinds
from paritrace.capture.pytorch.memory import geometry_of, logical_buffer
from paritrace.evidence import calls
from paritrace.evidence.gaps import CaptureGap, Gap


def state_digest(generator: torch.Generator) -> str:
    """`xxh3-64` of a torch generator's state."""
    state = generator.get_state()
    return xxhash.xxh3_64_hexdigest(logical_buffer(state.data_ptr(), geometry_of(state)))


def rng_slot(generator: Any, kinds: Kinds, definitions: Definitions) -> calls.Slot:
    """The input slot `rng` of an operator that draws random numbers (CA-5)."""
    used = generator if isinstance(generator, torch.Generator) else torch.default_generator
    name = "torch_cpu" if used is torch.default_generator else f"generator:{used.device.type}"
    origin = definitions.origin(calls.OriginKind.RNG, name)
    if used.device.type != "cpu":
        return calls.Slot(
            definitions.name("rng"), kinds.rng(), Gap(CaptureGap.UNSUPPORTED_DEVICE, used.device.type), origin
        )
    return calls.Slot(definitions.name("rng"), kinds.rng(), state_digest(used), origin)


def generator_states() -> list[tuple[str, str]]:
    """Digests of the process-wide generators: Python's, NumPy's legacy one if NumPy is loaded, torch's on the CPU."""
    found = [
        ("python", xxhash.xxh3_64_hexdigest(repr(random.getstate()).encode())),
        ("torch_cpu", state_digest(torch.default_generator)),
    ]
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        found.append(("numpy", xxhash.xxh3_64_hexdigest(repr(_numpy_state(numpy_random)).encode())))
    return sorted(found)


def _numpy_state(numpy_random: Any) -> object:
    state = numpy_random.get_state(legacy=False)
    inner = state["state"]
    return (state["bit_generator"], bytes(inner["key"].data), inner["pos"], state["has_gauss"], state["gauss"])
