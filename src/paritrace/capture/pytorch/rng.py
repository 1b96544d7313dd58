"""Random generators: digests of their states, read without advancing them."""

from __future__ import annotations

import random
import sys
from typing import Any

import torch
import xxhash

from paritrace.capture.definitions import Definitions
from paritrace.capture.pytorch.internals import generator_address
from paritrace.capture.pytorch.kinds import Kinds
from paritrace.capture.pytorch.memory import geometry_of, logical_buffer
from paritrace.evidence import calls
from paritrace.evidence.gaps import CaptureGap, Gap

MAX_KEPT = 1000  # 5 MB of states; beyond that a workload makes generators by the way, and they share one name


def state_digest(generator: torch.Generator) -> str:
    """`xxh3-64` of a torch generator's state."""
    state = generator.get_state()
    return xxhash.xxh3_64_hexdigest(logical_buffer(state.data_ptr(), geometry_of(state)))


class Generators:
    """The generators of a session: torch's own one, and those the workload made, numbered in the order of their use.

    Those are kept alive, a few KiB each, so that the address by which one is known does not come to mean another: the
    Python object of a generator is made anew for every call and has no identity.
    """

    def __init__(self) -> None:
        self._own: dict[int, tuple[int, torch.Generator]] = {}
        self._default = generator_address(torch.default_generator)

    def slot(self, generator: object, kinds: Kinds, definitions: Definitions) -> calls.Slot:
        """The input slot `rng` of an operator that draws random numbers (CA-5)."""
        used = generator if isinstance(generator, torch.Generator) else torch.default_generator
        origin = definitions.origin(calls.OriginKind.RNG, self._name(used))
        if not _on_cpu(used):
            return calls.Slot(
                definitions.name("rng"), kinds.rng(), Gap(CaptureGap.UNSUPPORTED_DEVICE, used.device.type), origin
            )
        return calls.Slot(definitions.name("rng"), kinds.rng(), state_digest(used), origin)

    def states(self) -> list[tuple[str, str]]:
        """Digests of Python's generator, NumPy's legacy one if NumPy is loaded, torch's on the CPU and those met."""
        found = [
            ("python", xxhash.xxh3_64_hexdigest(repr(random.getstate()).encode())),
            ("torch_cpu", state_digest(torch.default_generator)),
        ]
        numpy_random = sys.modules.get("numpy.random")
        if numpy_random is not None:
            found.append(("numpy", xxhash.xxh3_64_hexdigest(repr(_numpy_state(numpy_random)).encode())))
        own = [generator for _, generator in self._own.values()]
        found += [(self._name(generator), state_digest(generator)) for generator in own if _on_cpu(generator)]
        return sorted(found)

    def _name(self, generator: torch.Generator) -> str:
        address = generator_address(generator)
        if address == self._default:
            return "torch_cpu"
        if address not in self._own and len(self._own) < MAX_KEPT:
            self._own[address] = (len(self._own) + 1, generator)
        number = self._own[address][0] if address in self._own else f"{MAX_KEPT}+"
        return f"generator:{generator.device.type}#{number}"


def _on_cpu(generator: torch.Generator) -> bool:
    return generator.device.type == "cpu"


def _numpy_state(numpy_random: Any) -> object:
    state = numpy_random.get_state(legacy=False)
    inner = state["state"]
    return (state["bit_generator"], bytes(inner["key"].data), inner["pos"], state["has_gauss"], state["gauss"])
