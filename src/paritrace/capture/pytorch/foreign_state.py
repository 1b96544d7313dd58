"""State that other libraries keep: Megatron's tracker of generators, Transformer Engine's FP8 scales (CA-29).

Both are read only where the library is loaded, as the plain attributes that they are: its own functions make what is
not there yet. None of the two is a dependency; their attributes are those of Megatron-Core 0.8 to 0.14 and Transformer
Engine 1.x to 2.x.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch

from paritrace.capture.pytorch.plain_values import Value, plain

MEGATRON = "megatron.core.tensor_parallel.random"
TRACKER = "_CUDA_RNG_STATE_TRACKER"
TRANSFORMER_ENGINE = "transformer_engine"


def megatron_generators() -> Iterator[tuple[str, Value]]:
    """The states of Megatron's tracker by name: those that stand while no fork of it is entered."""
    module = sys.modules.get(MEGATRON)
    tracker = None if module is None else vars(module).get(TRACKER)
    for name, state in _items(_attributes(tracker).get("states_")):
        value = plain(state) if issubclass(type(state), (torch.Tensor, torch.Generator)) else None
        if value is not None:
            yield f"megatron:{name}", value


def fp8_scales(modules: Iterable[tuple[str, torch.nn.Module]]) -> Iterator[tuple[str, Value]]:
    """Scales and histories of maxima of each module with an `fp8_meta`: `layer.scaling_fwd.scale`."""
    if TRANSFORMER_ENGINE not in sys.modules:
        return
    for name, module in modules:
        for key, held in _items(_attributes(module).get("fp8_meta")):
            for attribute, value in sorted(_attributes(held).items()):
                known = plain(value) if issubclass(type(value), torch.Tensor) else None
                if known is not None:
                    yield f"{name}.{key}.{attribute}".lstrip("."), known


def _items(found: Any) -> list[tuple[str, Any]]:
    """The entries of a plain table in order of their names; none of anything else."""
    table = {str(key): value for key, value in found.items()} if type(found) is dict else {}
    return [(key, table[key]) for key in sorted(table)]


def _attributes(found: object) -> Mapping[str, Any]:
    try:
        known: Mapping[str, Any] = object.__getattribute__(found, "__dict__")
    except AttributeError:
        return {}
    return known
