"""Runs a checkout's training in this process for a tool that watches it, and leaves no module of it behind."""

import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch.optim.optimizer import register_optimizer_step_post_hook


def train(side: dict[str, Any], *, after_step: Callable[[], None] | None = None) -> None:
    """Run the training of one side; `after_step` is called behind every step of its optimizer."""
    script = Path(side["script"])
    modules = set(sys.modules)
    arguments, sys.argv = sys.argv, [str(script), *side["arguments"]]
    sys.path.insert(0, str(script.parent))
    hook = register_optimizer_step_post_hook(lambda *_: after_step() if after_step is not None else None)
    try:
        runpy.run_path(str(script), run_name="__main__")
    finally:
        hook.remove()
        sys.path.remove(str(script.parent))
        sys.argv = arguments
        for name in set(sys.modules) - modules:
            if str(getattr(sys.modules[name], "__file__", "") or "").startswith(str(script.parent)):
                del sys.modules[name]


def frames_in(checkout: str, frames: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Those of a stack, the innermost first, that lie in the checkout, by their file names."""
    folder = str(Path(checkout).parent)
    return [(Path(file).name, line) for file, line in frames if file.startswith(folder)]
