"""Runs a checkout's training in this process for a tool that watches it, and leaves no module of it behind."""

import runpy
import sys
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch


def train(side: dict[str, Any], *, after_step: Callable[[], None] | None = None) -> None:
    """Run the training of one side; `after_step` is called behind every `zero_grad` of its optimizer."""
    script = Path(side["script"])
    modules = set(sys.modules)
    arguments, sys.argv = sys.argv, [str(script), *side["arguments"]]
    sys.path.insert(0, str(script.parent))
    try:
        with behind_zero_grad(after_step):
            runpy.run_path(str(script), run_name="__main__")
    finally:
        sys.path.remove(str(script.parent))
        sys.argv = arguments
        for name in set(sys.modules) - modules:
            if str(getattr(sys.modules[name], "__file__", "") or "").startswith(str(script.parent)):
                del sys.modules[name]


@contextmanager
def behind_zero_grad(after_step: Callable[[], None] | None) -> Any:
    inner = torch.optim.Optimizer.zero_grad

    def zero_grad(self: Any, *arguments: Any, **named: Any) -> Any:
        done = inner(self, *arguments, **named)
        if after_step is not None:
            after_step()
        return done

    torch.optim.Optimizer.zero_grad = zero_grad  # type: ignore[method-assign]
    try:
        yield
    finally:
        torch.optim.Optimizer.zero_grad = inner  # type: ignore[method-assign]


def frames_in(checkout: str, frames: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Those of a stack, the innermost first, that lie in the checkout, by their file names."""
    folder = str(Path(checkout).parent)
    return [(Path(file).name, line) for file, line in frames if file.startswith(folder)]
