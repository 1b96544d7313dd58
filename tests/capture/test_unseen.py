"""What we ask of a tensor, nothing of the workload sees: neither a function mode nor a tracer (CA-15, P6)."""

from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode

from paritrace.capture.pytorch.internals import without_function_modes


class Seen(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls.append(func.__name__)
        return func(*args, **(kwargs or {}))


def looked_at(x: torch.Tensor) -> torch.Tensor:
    y = x.relu()
    with without_function_modes():
        y.detach().sum()
    return y.exp()


def plain(x: torch.Tensor) -> torch.Tensor:
    return x.relu().exp()


def nodes(function: Any) -> list[str]:
    tracer: Any = torch.jit
    return [node.kind() for node in tracer.trace(function, (torch.ones(2),)).graph.nodes()]


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
def test_ca15_a_trace_does_not_hold_what_we_ask() -> None:
    assert nodes(looked_at) == nodes(plain) == ["aten::relu", "aten::exp"]


def test_p6_a_function_mode_does_not_see_what_we_ask() -> None:
    x = torch.ones(2)
    with Seen() as seen:
        looked_at(x)
    assert seen.calls == ["relu", "exp"]
