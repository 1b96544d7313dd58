"""Torch's switches that bear on determinism: read always, set only on request and by a named list (CA-21)."""

from __future__ import annotations

import torch

from paritrace.capture.pytorch.internals import deterministic_fill
from paritrace.capture.surroundings import TorchFacts

POLICY = "deterministic-v1"


def torch_facts(*, deterministic: bool) -> TorchFacts:
    """Read the switches; with `deterministic` set those of the policy first and say what they were before."""
    policy = _apply() if deterministic else {}
    return TorchFacts(devices=_devices(), num_threads=torch.get_num_threads(), determinism=_switches(), policy=policy)


def _apply() -> dict[str, tuple[str, str]]:
    """Set the policy. It never seeds, and leaves allocation as it is: no memory is filled that was not before."""
    before = _switches()
    torch.use_deterministic_algorithms(True, warn_only=True)
    deterministic_fill().fill_uninitialized_memory = False
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    after = _switches()
    changed = {name: (before[name], after[name]) for name in _POLICY_SWITCHES}
    return {"policy": ("none", POLICY), **changed}


_POLICY_SWITCHES = (
    "deterministic_algorithms",
    "deterministic_warn_only",
    "fill_uninitialized_memory",
    "cudnn.deterministic",
    "cudnn.benchmark",
)


def _switches() -> dict[str, str]:
    return {
        "deterministic_algorithms": str(torch.are_deterministic_algorithms_enabled()),
        "deterministic_warn_only": str(torch.is_deterministic_algorithms_warn_only_enabled()),
        "fill_uninitialized_memory": str(deterministic_fill().fill_uninitialized_memory),
        "cudnn.deterministic": str(torch.backends.cudnn.deterministic),
        "cudnn.benchmark": str(torch.backends.cudnn.benchmark),
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "default_dtype": str(torch.get_default_dtype()),
        "mkldnn": str(torch.backends.mkldnn.enabled),
    }


def _devices() -> tuple[str, ...]:
    found = [f"cpu {torch.backends.cpu.get_cpu_capability()}"]
    if torch.cuda.is_available():
        found += [f"cuda {torch.cuda.get_device_name(index)}" for index in range(torch.cuda.device_count())]
    return tuple(found)
