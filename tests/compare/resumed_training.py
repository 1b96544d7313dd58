"""A training that saves a checkpoint in its middle and can be resumed from it, with something forgotten."""

import gc
import random
from collections.abc import Callable
from pathlib import Path

import torch
from torch.optim.lr_scheduler import StepLR

import paritrace
from paritrace.compare.engine import compare
from paritrace.compare.result import Comparison
from paritrace.compare.resume_boundary import parse_resume
from paritrace.compare.resume_joined import resumed
from paritrace.compare.settings import Settings
from paritrace.runs.reading import open_run

BOUNDARY, END = 4, 7
Optimizers = Callable[[list[torch.nn.Parameter]], torch.optim.Optimizer]


def adam(parameters: list[torch.nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.AdamW(parameters, lr=0.01)


def train(
    run: Path,
    checkpoint: Path,
    *,
    resume: bool = False,
    forget: str = "",
    number: int = 0,
    optimizers: Optimizers = adam,
) -> Path:
    """Seven steps, or the last three of them from the checkpoint; `number` is added to what the resumed run counts."""
    gc.collect()  # what an earlier training left is not of this one
    torch.manual_seed(0 if not resume else 99)
    random.seed(1 if not resume else 2)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1))
    optimizer = optimizers(list(model.parameters()))
    scheduler = StepLR(optimizer, 2, gamma=0.5)
    data = torch.randn(10, 5, 4, generator=torch.Generator().manual_seed(7))
    first = 0
    if resume:
        first = BOUNDARY
        kept = torch.load(checkpoint, weights_only=False)
        if forget != "weights":
            model.load_state_dict(kept["model"])
        if forget != "optimizer":
            optimizer.load_state_dict(kept["optimizer"])
        if forget != "scheduler":
            scheduler.load_state_dict(kept["scheduler"])
        if forget != "rng":
            torch.set_rng_state(kept["rng"])
    with paritrace.trace(run, steps=(0, 1000), diff=False):
        for step in range(first, END):
            if step == BOUNDARY and not resume:
                state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "rng": torch.get_rng_state()}
                torch.save(state | {"scheduler": scheduler.state_dict()}, checkpoint)
            paritrace.step(step + number)
            optimizer.zero_grad()
            torch.autograd.backward(model(data[step - BOUNDARY if forget == "data" else step]).square().mean())
            optimizer.step()
            scheduler.step()
    return run


def compared(
    whole: Path, candidate: Path, text: str = str(BOUNDARY), *, settings: Settings | None = None
) -> Comparison:
    with open_run(whole) as ours, open_run(candidate) as theirs:
        chosen = resumed((ours, theirs), parse_resume(text), settings=settings or Settings())
        return compare(ours, theirs, chosen).result
