"""Callbacks for Hugging Face's Trainer and for Lightning: they name the training steps (CA-1, CA-3).

Neither library is imported before its callback is asked for. A capture must be running: `paritrace run` or
`paritrace.trace`; without one the callbacks do nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from paritrace.capture.api import step
from paritrace.errors import HostError

if TYPE_CHECKING:
    from types import ModuleType


def trainer_callback() -> Any:
    """A `transformers.TrainerCallback`: the step is the Trainer's `global_step`, also after a resume.

    Raises:
        HostError: Refused: transformers is not installed (`missing_extra`).
    """
    transformers = _library("transformers", extra="transformers")

    class Steps(transformers.TrainerCallback):  # type: ignore[name-defined,misc]  # its base is known at run time only
        """Names each step as it begins."""

        def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            """The first micro-batch of an optimizer step is about to be taken."""
            step(int(state.global_step))

    return Steps()


def lightning_callback() -> Any:
    """A Lightning `Callback`: the step is the trainer's `global_step`, the same for all batches of an accumulation.

    Raises:
        HostError: Refused: lightning is not installed (`missing_extra`).
    """
    lightning = _library("lightning.pytorch", extra="lightning")

    class Steps(lightning.Callback):  # type: ignore[name-defined,misc]  # its base is known at run time only
        """Names each step as its batch begins."""

        def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
            """A batch is about to be trained on; `global_step` counts optimizer steps."""
            step(int(trainer.global_step))

    return Steps()


def _library(name: str, *, extra: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError:
        raise HostError(
            f"{name} is not installed", code="missing_extra", fix=f"pip install 'paritrace[{extra}]'"
        ) from None
